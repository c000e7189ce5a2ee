//! Reading of images, and the parts a run makes of them.

use crate::args::data::{ColourKind, DataArgs, Extent, FitKind, Geometry, Kind};
use crate::support::exit::{input, usage};
use crate::support::models::scale_for;
use anyhow::{Context, Result};
use convgp::data::{Dataset, ImageShape, Images, PixelView, Targets};
use convgp::prepare::Scaling;
use convgp_data::registry::{self, REGISTRY};
use convgp_data::sample::NAME as SAMPLE;
use convgp_data::{Colour, Fit, Loaded, OpenOptions, Size, SplitKind, TargetKind};
use std::path::Path;

/// Images the generator makes where the original rectangles are not at hand.
const GENERATED: (usize, usize) = (1200, 10_000);

/// The geometry of a model, so that images are read as they were for its training.
pub fn geometry_of(shape: ImageShape, fit: Fit) -> Geometry {
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
    Geometry { size, fit, colour }
}

/// Options for the readers.
pub fn options(args: &DataArgs, geometry: &Geometry) -> Result<OpenOptions> {
    let shape = args.shape.map(|e| ImageShape::new(e.height, e.width, e.channels.unwrap_or(1)));
    Ok(OpenOptions {
        format: args.format,
        size: geometry.size.map(|e| Size { height: e.height, width: e.width, fit: geometry.fit.fit() }),
        colour: match geometry.colour {
            ColourKind::AsFound => Colour::AsFound,
            ColourKind::Grey => Colour::Grey,
            ColourKind::Rgb => Colour::Rgb,
        },
        classes: args.classes.clone(),
        limit: args.limit,
        targets: match args.targets {
            Kind::Auto => TargetKind::Auto,
            Kind::Classes => TargetKind::Classes,
            Kind::Real => TargetKind::Real,
        },
        label_column: args.label_column.clone(),
        image_shape: shape.transpose().map_err(|e| usage(format!("--shape: {e}")))?,
        strict: args.strict,
        splits: args.splits.clone(),
        ..OpenOptions::default()
    })
}

/// Reads a path, a registered data set, or the built-in digits.
pub fn load(source: &str, args: &DataArgs, geometry: &Geometry) -> Result<Loaded> {
    load_known(source, args, geometry, &[])
}

/// The same for a model that knows some classes.
pub fn load_known(source: &str, args: &DataArgs, geometry: &Geometry, known: &[String]) -> Result<Loaded> {
    let options = OpenOptions { known_classes: known.to_vec(), ..options(args, geometry)? };
    let path = Path::new(source);
    if path.exists() {
        return Ok(convgp_data::open(path, &options)?);
    }
    let installed = registry::locate(source, args.data_dir.as_deref());
    match source {
        SAMPLE => Ok(convgp_data::open(SAMPLE, &options)?),
        "rectangles" if installed.is_err() => {
            reduce(args, registry::generated_rectangles(GENERATED.0, GENERATED.1, 0), geometry)
        }
        name if registry::find(name).is_some() => {
            Ok(registry::open_named(name, args.data_dir.as_deref(), &options)?)
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
fn reduce(args: &DataArgs, mut loaded: Loaded, geometry: &Geometry) -> Result<Loaded> {
    if args.targets == Kind::Real {
        return Err(usage(
            "--targets real: these images are made with classes, wide and tall; leave the option out",
        ));
    }
    let shape = loaded.splits[0].data.images().shape();
    let same_size = geometry.size.is_none_or(|s| (s.height, s.width) == (shape.height(), shape.width()));
    if !same_size || geometry.colour == ColourKind::Rgb {
        return Err(input(format!(
            "these images are made as {shape} and stay so; no other size or colour is possible"
        )));
    }
    for split in &mut loaded.splits {
        if !args.classes.is_empty() {
            let wanted = convgp_data::class_indices(&split.data, &args.classes)?;
            split.data = convgp_data::subset_classes(&split.data, &wanted)?;
        }
        if let Some(limit) = args.limit {
            split.data = convgp_data::limit_balanced(&split.data, limit, 0)?;
        }
    }
    loaded.class_names = loaded.splits[0].data.class_names().to_vec();
    Ok(loaded)
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

    /// The same on the scale of the training images; validation and test images on another scale are converted or
    /// refused.
    pub fn on_scale(self, scaling: Scaling) -> Result<Self> {
        let scaled = |data: Dataset, split: SplitKind| -> Result<Dataset> {
            let scale = scale_for(scaling, data.images(), &format!("{split} images"))?;
            Ok(data.with_scale(scale))
        };
        Ok(Self {
            train: self.train.with_scale(scaling.scale()),
            validation: self.validation.map(|d| scaled(d, SplitKind::Validation)).transpose()?,
            test: self.test.map(|d| scaled(d, SplitKind::Test)).transpose()?,
        })
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
        PixelView::U16(v) => v.iter().for_each(|x| hasher.update(x.to_le_bytes())),
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
    let aligned = Dataset::new(data.images().clone(), targets)
        .and_then(|d| d.with_class_names(names.to_vec()))
        .map_err(convgp::Error::from)?;
    match data.image_names() {
        Some(names) => Ok(aligned.with_image_names(names.to_vec()).map_err(convgp::Error::from)?),
        None => Ok(aligned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let loaded = load("sample", &args, &Geometry::default()).unwrap();
        assert_eq!(loaded.class_names, ["4", "9"]);
        assert_eq!(loaded.train().unwrap().len(), 10);
        let parts = Parts::new(loaded, Some(0.2), "sample").unwrap();
        assert_eq!((parts.train.len(), parts.validation.unwrap().len()), (8, 2));
        assert!(parts.test.is_some());
        let real = DataArgs { targets: Kind::Real, ..Default::default() };
        let error =
            reduce(&real, registry::generated_rectangles(10, 10, 0), &Geometry::default()).unwrap_err();
        assert!(error.to_string().contains("--targets real"), "{error}");
        let error = load("nowhere", &args, &Geometry::default()).unwrap_err().to_string();
        assert!(error.contains("mnist") && error.contains("sample"), "{error}");
    }
}
