//! Where images come from: options shared by all commands that read data.

use crate::exit::{input, usage};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use convgp::data::{Dataset, ImageShape, Images, PixelView, Targets};
use convgp_data::registry::{self, REGISTRY};
use convgp_data::{Colour, FileHash, Fit, Format, Loaded, OpenOptions, Size, Split, SplitKind, TargetKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Images the generator makes where the original rectangles are not at hand.
const GENERATED: (usize, usize) = (1200, 10_000);
/// The name of the digits that are built in.
const SAMPLE: &str = "sample";

/// What to take of the data.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct DataArgs {
    /// Folder with registered data sets (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub data_dir: Option<PathBuf>,
    /// Keep only these classes, by name or number.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', help_heading = "Data")]
    pub classes: Vec<String>,
    /// Keep at most this many images of each split, classes balanced.
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub limit: Option<usize>,
    /// Whether labels are classes or real numbers.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub targets: Kind,
    /// Column with the label, in tables and Parquet: a name or a number from 0.
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    pub label_column: Option<String>,
    /// Shape of images in tables and arrays that are not square and grey, such as 32x32x3.
    #[arg(long, value_name = "HxWxC", help_heading = "Data")]
    pub shape: Option<Extent>,
    /// Read as this format instead of finding out.
    #[arg(long, value_parser = parse_format, help_heading = "Data")]
    pub format: Option<Format>,
    /// Make an unreadable image an error instead of skipping it.
    #[arg(long, help_heading = "Data")]
    pub strict: bool,
    /// The only splits to open; all when empty.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<SplitKind>,
}

/// How images are brought to one shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Geometry {
    /// Bring all images to this size. Files of mixed sizes become 32x32 otherwise.
    #[arg(long, value_name = "HxW", help_heading = "Data")]
    pub size: Option<Extent>,
    /// How to get there.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub fit: FitKind,
    /// Grey or RGB, whatever the files are.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub colour: ColourKind,
}

/// Classes or regression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Classes when all labels are whole numbers or words.
    #[default]
    Auto,
    /// Classes.
    Classes,
    /// Real numbers.
    Real,
}

/// Ways to another size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitKind {
    /// Cut the largest centred part of the right proportions, then scale.
    #[default]
    Crop,
    /// Scale height and width separately.
    Stretch,
    /// Cut out the centre, or add a black border.
    Centre,
}

/// Colour of the images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColourKind {
    /// As stored.
    #[default]
    AsFound,
    /// One channel.
    Grey,
    /// Three channels.
    Rgb,
}

impl FitKind {
    /// The library's word for it.
    pub fn fit(self) -> Fit {
        match self {
            FitKind::Crop => Fit::Crop,
            FitKind::Stretch => Fit::Stretch,
            FitKind::Centre => Fit::Centre,
        }
    }
}

/// `HxW` or `HxWxC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Extent {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels, if given.
    pub channels: Option<usize>,
}

impl FromStr for Extent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not of the form 28x28 or 32x32x3");
        let sides: Vec<usize> =
            text.split('x').map(|s| s.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        match (sides.as_slice(), sides.contains(&0)) {
            (&[height, width], false) => Ok(Self { height, width, channels: None }),
            (&[height, width, c], false) => Ok(Self { height, width, channels: Some(c) }),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Extent {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Extent> for String {
    fn from(e: Extent) -> Self {
        e.channels
            .map_or_else(|| format!("{}x{}", e.height, e.width), |c| format!("{}x{}x{c}", e.height, e.width))
    }
}

fn parse_format(text: &str) -> Result<Format, String> {
    let known = "idx, cifar10, cifar100, npy, npz, table, folder, metadata, parquet";
    serde_json::from_value(text.into()).map_err(|_| format!("unknown format; there are {known}"))
}

impl Geometry {
    /// That of a model, so that images are read as they were for its training.
    pub fn of_model(shape: ImageShape, fit: Fit) -> Self {
        let colour = match shape.channels() {
            1 => ColourKind::Grey,
            3 => ColourKind::Rgb,
            _ => ColourKind::AsFound,
        };
        let fit = match fit {
            Fit::Crop => FitKind::Crop,
            Fit::Stretch => FitKind::Stretch,
            Fit::Centre => FitKind::Centre,
        };
        let size = Some(Extent { height: shape.height(), width: shape.width(), channels: None });
        Self { size, fit, colour }
    }
}

impl DataArgs {
    /// Options for the readers.
    pub fn options(&self, geometry: &Geometry) -> Result<OpenOptions> {
        let shape = self.shape.map(|e| ImageShape::new(e.height, e.width, e.channels.unwrap_or(1)));
        Ok(OpenOptions {
            format: self.format,
            size: geometry.size.map(|e| Size { height: e.height, width: e.width, fit: geometry.fit.fit() }),
            colour: match geometry.colour {
                ColourKind::AsFound => Colour::AsFound,
                ColourKind::Grey => Colour::Grey,
                ColourKind::Rgb => Colour::Rgb,
            },
            classes: self.classes.clone(),
            limit: self.limit,
            targets: match self.targets {
                Kind::Auto => TargetKind::Auto,
                Kind::Classes => TargetKind::Classes,
                Kind::Real => TargetKind::Real,
            },
            label_column: self.label_column.clone(),
            image_shape: shape.transpose().map_err(|e| usage(format!("--shape: {e}")))?,
            strict: self.strict,
            splits: self.splits.clone(),
            ..OpenOptions::default()
        })
    }

    /// Reads a path, a registered data set, or the built-in digits.
    pub fn load(&self, source: &str, geometry: &Geometry) -> Result<Loaded> {
        let options = self.options(geometry)?;
        let path = Path::new(source);
        if path.exists() {
            return Ok(convgp_data::open(path, &options)?);
        }
        let installed = registry::locate(source, self.data_dir.as_deref());
        match source {
            SAMPLE => self.reduce(sample(), geometry),
            "rectangles" if installed.is_err() => {
                self.reduce(registry::generated_rectangles(GENERATED.0, GENERATED.1, 0), geometry)
            }
            name if registry::find(name).is_some() => {
                Ok(registry::open_named(name, self.data_dir.as_deref(), &options)?)
            }
            _ => {
                let names = REGISTRY.map(|info| info.name).join(", ");
                Err(input(format!(
                    "{source}: no such file or folder, and no data set of that name; there are {names}, {SAMPLE}"
                )))
            }
        }
    }

    /// Applies what readers would have done to data that were not read.
    fn reduce(&self, mut loaded: Loaded, geometry: &Geometry) -> Result<Loaded> {
        let shape = loaded.splits[0].data.images().shape();
        let same_size = geometry.size.is_none_or(|s| (s.height, s.width) == (shape.height(), shape.width()));
        if !same_size || geometry.colour == ColourKind::Rgb {
            return Err(input(format!(
                "these images are made as {shape} and stay so; no other size or colour is possible"
            )));
        }
        for split in &mut loaded.splits {
            if !self.classes.is_empty() {
                let wanted = convgp_data::class_indices(&split.data, &self.classes)?;
                split.data = convgp_data::subset_classes(&split.data, &wanted)?;
            }
            if let Some(limit) = self.limit {
                split.data = convgp_data::limit_balanced(&split.data, limit, 0)?;
            }
        }
        loaded.class_names = loaded.splits[0].data.class_names().to_vec();
        Ok(loaded)
    }
}

/// The built-in digits as a data set.
fn sample() -> Loaded {
    let (train, test) = convgp_data::sample::mnist();
    let split = |kind, data| Split { kind, data };
    Loaded {
        class_names: train.class_names().to_vec(),
        provenance: vec![FileHash {
            name: "built-in digits".into(),
            bytes: (train.len() * train.images().shape().len()) as u64,
            sha256: fingerprint(&train),
        }],
        splits: vec![split(SplitKind::Train, train), split(SplitKind::Test, test)],
        skipped: Vec::new(),
        format: Format::Idx,
        notes: vec!["300 + 100 digits of MNIST, built into the program".into()],
    }
}

/// The parts a run works with.
#[derive(Debug)]
pub struct Parts {
    /// For training.
    pub train: Dataset,
    /// For the held-out curve.
    pub validation: Option<Dataset>,
    /// For the final figures.
    pub test: Option<Dataset>,
}

impl Parts {
    /// Takes the splits apart; `fraction` of the training images is held out where there is no validation split.
    pub fn new(loaded: Loaded, fraction: Option<f64>, source: &str) -> Result<Self> {
        let mut of = [None, None, None];
        for split in loaded.splits {
            of[split.kind as usize] = Some(split.data);
        }
        let [train, mut validation, test] = of;
        let mut train = train.ok_or_else(|| {
            input(format!("{source} has no training images; name a file or folder with a training split"))
        })?;
        if let Some(f) = fraction {
            if validation.is_some() {
                return Err(usage(format!(
                    "{source} has a validation split of its own; leave out --validation"
                )));
            }
            let parts = convgp_data::split(&train, &[1.0 - f, f], 0).context("--validation")?;
            let mut parts = parts.into_iter();
            train = parts.next().context("the first part")?;
            validation = parts.next();
        }
        Ok(Self { train, validation, test })
    }
}

/// SHA-256 over shape, pixels and targets: the same images give the same, whatever files they came from.
pub fn fingerprint(data: &Dataset) -> String {
    use sha2::{Digest, Sha256};
    let mut hasher = Sha256::new();
    hasher.update(data.images().shape().to_string());
    hash_pixels(data.images(), &mut hasher);
    match data.targets() {
        Targets::Classes { labels, classes } => {
            hasher.update(classes.to_le_bytes());
            labels.iter().for_each(|l| hasher.update(l.to_le_bytes()));
        }
        Targets::Real(values) => values.iter().for_each(|v| hasher.update(v.to_le_bytes())),
    }
    hasher.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

fn hash_pixels(images: &Images, hasher: &mut sha2::Sha256) {
    use sha2::Digest;
    match images.pixels().view() {
        PixelView::U8(v) => hasher.update(v),
        PixelView::F32(v) => v.iter().for_each(|x| hasher.update(x.to_le_bytes())),
        PixelView::F64(v) => v.iter().for_each(|x| hasher.update(x.to_le_bytes())),
    }
}

/// The same data with labels numbered as the model numbers its classes.
pub fn align_classes(data: &Dataset, names: &[String], source: &str) -> Result<Dataset> {
    let Targets::Classes { labels, .. } = data.targets() else { return Ok(data.clone()) };
    if names.is_empty() || data.class_names() == names {
        return Ok(data.clone());
    }
    let new: Vec<Option<u32>> =
        data.class_names().iter().map(|n| names.iter().position(|m| m == n).map(|i| i as u32)).collect();
    let renumber = |l: &u32| {
        new[*l as usize].ok_or_else(|| {
            let class = &data.class_names()[*l as usize];
            input(format!(
                "{source} has images of class {class:?}, which the model does not know; it knows {names:?}. \
                 Choose classes with --classes"
            ))
        })
    };
    let labels = labels.iter().map(renumber).collect::<Result<Vec<u32>>>()?;
    let targets = Targets::classes(labels, names.len()).map_err(convgp::Error::from)?;
    let data = Dataset::new(data.images().clone(), targets).and_then(|d| d.with_class_names(names.to_vec()));
    Ok(data.map_err(convgp::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read_and_written() {
        for text in ["28x28", "5x3", "32x32x3"] {
            assert_eq!(String::from(text.parse::<Extent>().unwrap()), text);
        }
        for text in ["28", "28x", "0x3", "axb", "1x2x3x4", ""] {
            assert!(text.parse::<Extent>().is_err(), "{text}");
        }
    }

    #[test]
    fn classes_are_renumbered_by_name() {
        let (train, _) = convgp_data::sample::mnist();
        let some = convgp_data::subset_classes(&train, &[3, 1]).unwrap();
        let names: Vec<String> = ["1", "2", "3"].map(String::from).to_vec();
        let aligned = align_classes(&some, &names, "x").unwrap();
        let (Targets::Classes { labels: a, .. }, Targets::Classes { labels: b, classes }) =
            (some.targets(), aligned.targets())
        else {
            panic!()
        };
        assert_eq!(*classes, 3);
        assert!(a.iter().zip(b).all(|(a, b)| [2, 0][*a as usize] == *b));
        let error = align_classes(&train, &names, "x").unwrap_err().to_string();
        assert!(error.contains("--classes"), "{error}");
    }

    #[test]
    fn names_and_built_in_data_are_found() {
        let args = DataArgs { classes: vec!["4".into(), "9".into()], limit: Some(10), ..Default::default() };
        let loaded = args.load("sample", &Geometry::default()).unwrap();
        assert_eq!(loaded.class_names, ["4", "9"]);
        assert_eq!(loaded.train().unwrap().len(), 10);
        let parts = Parts::new(loaded, Some(0.2), "sample").unwrap();
        assert_eq!((parts.train.len(), parts.validation.unwrap().len()), (8, 2));
        assert!(parts.test.is_some());
        let error = args.load("nowhere", &Geometry::default()).unwrap_err().to_string();
        assert!(error.contains("mnist") && error.contains("sample"), "{error}");
    }
}
