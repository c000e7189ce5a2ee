//! Image files: look at all headers, agree on one shape, then decode.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::{Path, PathBuf};

use convgp::data::{ImageShape, Pixels};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use rayon::prelude::*;

use crate::error::{Error, Place, Result};
use crate::loaded::Skipped;
use crate::options::{Colour, OpenOptions, Size};
use crate::source::Budget;
use crate::transform::Depth;

/// Size that images of mixed sizes are brought to when none is asked for.
const DEFAULT_SIDE: usize = 32;
/// A single decoded image may take this much, whatever the memory cap: 256 megapixels of RGB bytes.
const LARGEST_IMAGE: u64 = 768 << 20;

/// An image that is still packed.
#[derive(Debug)]
pub(crate) enum Encoded {
    /// In a file.
    File(PathBuf),
    /// In memory, with a name for messages.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Memory { name: String, bytes: Vec<u8> },
}

impl Encoded {
    pub(crate) fn name(&self) -> String {
        match self {
            Encoded::File(path) => path.display().to_string(),
            Encoded::Memory { name, .. } => name.clone(),
        }
    }

    /// A decoder for the format found by content: a PNG called `.jpg` is still a PNG.
    fn decoder(&self, limit: u64) -> Outcome<impl ImageDecoder> {
        let stream: Box<dyn Stream + '_> = match self {
            Encoded::File(path) => Box::new(BufReader::new(File::open(path).map_err(text)?)),
            Encoded::Memory { bytes, .. } => Box::new(Cursor::new(bytes)),
        };
        let mut reader = ImageReader::new(stream).with_guessed_format().map_err(text)?;
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(limit);
        reader.limits(limits);
        reader.into_decoder().map_err(text)
    }

    /// Reads only the header.
    fn probe(&self, limit: u64) -> Outcome<Probe> {
        let mut decoder = self.decoder(limit)?;
        let (width, height) = decoder.dimensions();
        let bytes = decoder.total_bytes();
        if width == 0 || height == 0 || bytes > limit {
            return Err(format!(
                "{height}x{width} pixels would take {bytes} bytes; at most {limit} are allowed"
            ));
        }
        // Orientations 5 to 8 of the Exif standard exchange rows and columns.
        let turned = decoder.orientation().map_err(text)?.to_exif() >= 5;
        let (height, width) = if turned { (width, height) } else { (height, width) };
        let colour = decoder.color_type();
        Ok(Probe {
            height: height as usize,
            width: width as usize,
            colour: colour.has_color(),
            alpha: colour.has_alpha(),
            deep: colour.bytes_per_pixel() > colour.channel_count(),
        })
    }

    fn image(&self, limit: u64) -> Outcome<DynamicImage> {
        let mut decoder = self.decoder(limit)?;
        let orientation = decoder.orientation().map_err(text)?;
        let mut image = DynamicImage::from_decoder(decoder).map_err(text)?;
        image.apply_orientation(orientation);
        Ok(image)
    }
}

/// A reason in words instead of an error: the file is then passed over.
type Outcome<T> = std::result::Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What the decoders need of a stream.
trait Stream: BufRead + Seek {}
impl<T: BufRead + Seek> Stream for T {}

/// What the header of an image says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Probe {
    height: usize,
    width: usize,
    colour: bool,
    alpha: bool,
    /// More than eight bits a channel.
    deep: bool,
}

/// Decoded images of several groups, all of one shape.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub shape: ImageShape,
    /// Pixels per group.
    pub pixels: Vec<Pixels>,
    /// Which images of each group could be read.
    pub kept: Vec<Vec<usize>>,
    pub skipped: Vec<Skipped>,
    pub notes: Vec<String>,
}

/// Decodes all groups. Unreadable images are passed over with a reason, or are an error if `options.strict`.
pub(crate) fn decode_all(
    path: &Path,
    groups: &[Vec<Encoded>],
    options: &OpenOptions,
    budget: &Budget,
) -> Result<Decoded> {
    let limit = LARGEST_IMAGE.min(budget.left());
    let probe = |e: &Encoded| e.probe(limit);
    let probes: Vec<Vec<Outcome<Probe>>> = groups.iter().map(|g| g.par_iter().map(probe).collect()).collect();
    let good: Vec<Probe> = probes.iter().flatten().filter_map(|p| p.as_ref().ok().copied()).collect();
    let mut skipped = Vec::new();
    let mut notes = Vec::new();
    let (mut pixels, mut kept) = (Vec::new(), Vec::new());
    let Some((shape, size)) = agree(&good, options, &mut notes) else {
        let reasons = groups.iter().flatten().zip(probes.into_iter().flatten());
        let skipped = reasons.filter_map(|(e, p)| Some((e.name(), p.err()?))).collect();
        return Err(nothing_readable(path, skipped));
    };
    let deep = good.iter().any(|p| p.deep);
    for (group, probes) in groups.iter().zip(probes) {
        let (decoded, failed) = match deep {
            true => decode_group::<u16>(path, group, probes, shape, size, budget)?,
            false => decode_group::<u8>(path, group, probes, shape, size, budget)?,
        };
        if let Some((i, reason)) = failed.first().filter(|_| options.strict) {
            let (file, place) = (group[*i].name(), Place::Image(*i));
            return Err(Error::Damaged { file, place, reason: reason.clone() });
        }
        kept.push((0..group.len()).filter(|i| failed.iter().all(|f| f.0 != *i)).collect());
        pixels.push(decoded);
        skipped.extend(failed.into_iter().map(|(i, reason)| Skipped { path: group[i].name(), reason }));
    }
    if kept.iter().all(Vec::is_empty) {
        return Err(nothing_readable(path, skipped.into_iter().map(|s| (s.path, s.reason)).collect()));
    }
    Ok(Decoded { shape, pixels, kept, skipped, notes })
}

/// An image by its place in the group, and what is wrong with it.
type Failed = (usize, String);

/// Pixels of all images of a group, and those that could not be decoded.
fn decode_group<T: Depth>(
    path: &Path,
    group: &[Encoded],
    probes: Vec<Outcome<Probe>>,
    shape: ImageShape,
    size: Size,
    budget: &Budget,
) -> Result<(Pixels, Vec<Failed>)> {
    let total = group.len() as u128 * shape.len() as u128;
    budget.take(total * size_of::<T>() as u128, &path.display().to_string(), "decoded images")?;
    let limit = LARGEST_IMAGE.min(budget.left());
    let mut all = vec![T::default(); total as usize];
    let decode = |((e, probe), out): ((&Encoded, Outcome<Probe>), &mut [T])| {
        let image = probe.and_then(|_| e.image(limit))?;
        out.copy_from_slice(&T::of(image, shape, size));
        Ok(())
    };
    let outcomes: Vec<Outcome<()>> =
        group.par_iter().zip(probes).zip(all.par_chunks_mut(shape.len())).map(decode).collect();
    let failed: Vec<Failed> =
        outcomes.into_iter().enumerate().filter_map(|(i, o)| Some((i, o.err()?))).collect();
    Ok((T::pixels(without(all, &failed, shape.len())), failed))
}

/// Drops the images that failed.
fn without<T>(mut all: Vec<T>, failed: &[Failed], len: usize) -> Vec<T> {
    for (i, _) in failed.iter().rev() {
        all.drain(i * len..(i + 1) * len);
    }
    all
}

fn nothing_readable(path: &Path, skipped: Vec<(String, String)>) -> Error {
    let path = path.display().to_string();
    match skipped.is_empty() {
        true => Error::Missing {
            path,
            what: "an image file".into(),
            hint: "Expected class/file or split/class/file with PNG, JPEG, BMP, WebP or TIFF",
        },
        false => Error::NothingReadable { path, skipped },
    }
}

/// One shape for all images, and how to get there when they differ from it.
fn agree(probes: &[Probe], options: &OpenOptions, notes: &mut Vec<String>) -> Option<(ImageShape, Size)> {
    let first = probes.first()?;
    let mixed = probes.iter().filter(|p| (p.height, p.width) != (first.height, first.width)).count();
    let size = options.size.unwrap_or_else(|| match mixed {
        0 => Size::new(first.height, first.width),
        _ => {
            let side = DEFAULT_SIDE;
            notes.push(format!("images come in several sizes; each was cropped and scaled to {side}x{side}"));
            Size::new(side, side)
        }
    });
    let count = |test: fn(&Probe) -> bool| probes.iter().filter(|p| test(p)).count();
    match count(|p| p.deep) {
        0 => {}
        some if some == probes.len() => notes.push("images have 16 bits a channel, which are kept".into()),
        some => notes
            .push(format!("{some} images have 16 bits a channel; the others were brought to their scale")),
    }
    if count(|p| p.alpha) > 0 {
        notes.push(format!("transparency was left out of {} images", count(|p| p.alpha)));
    }
    let channels = match options.colour {
        Colour::Grey => 1,
        Colour::Rgb => 3,
        Colour::AsFound => 1 + 2 * usize::from(probes.iter().any(|p| p.colour)),
    };
    ImageShape::new(size.height, size.width, channels).ok().map(|shape| (shape, size))
}
