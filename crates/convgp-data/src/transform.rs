//! Size and colour of images.

use convgp::data::{ImageShape, Pixels};
use image::imageops::FilterType;
use image::{DynamicImage, GrayImage, RgbImage};

use crate::error::{Error, Result};
use crate::loaded::RawSplit;
use crate::options::{Colour, Fit, OpenOptions, Size};

/// Pixels of the shape asked for, row-major with the channel last. Transparency is ignored.
pub(crate) fn to_pixels(image: DynamicImage, shape: ImageShape, size: Size) -> Vec<u8> {
    // Colour first: grey images are then scaled as one channel, the same whatever they were stored as.
    let image = match shape.channels() {
        1 => DynamicImage::ImageLuma8(image.into_luma8()),
        _ => DynamicImage::ImageRgb8(image.into_rgb8()),
    };
    fit(image, size).into_bytes()
}

fn fit(image: DynamicImage, size: Size) -> DynamicImage {
    let (h, w) = (image.height(), image.width());
    let (to_h, to_w) = (size.height as u32, size.width as u32);
    if (h, w) == (to_h, to_w) {
        return image;
    }
    match size.fit {
        Fit::Stretch => image.resize_exact(to_w, to_h, FilterType::Triangle),
        Fit::Crop => {
            // The largest part of the proportions to_h : to_w, at least one pixel wide.
            let part_h = u64::from(h).min(u64::from(w) * u64::from(to_h) / u64::from(to_w)).max(1) as u32;
            let part_w = u64::from(w).min(u64::from(h) * u64::from(to_w) / u64::from(to_h)).max(1) as u32;
            let part = image.crop_imm((w - part_w) / 2, (h - part_h) / 2, part_w, part_h);
            part.resize_exact(to_w, to_h, FilterType::Triangle)
        }
        Fit::Centre => centre(&image, to_h, to_w),
    }
}

/// The centre of the image on a black ground of the size wanted.
fn centre(image: &DynamicImage, to_h: u32, to_w: u32) -> DynamicImage {
    let offset = |have: u32, want: u32| (i64::from(want) - i64::from(have)).div_euclid(2);
    let mut ground = DynamicImage::new(to_w, to_h, image.color());
    image::imageops::replace(&mut ground, image, offset(image.width(), to_w), offset(image.height(), to_h));
    match image {
        // `replace` works on RGBA views; the colour type of the ground decides what is stored.
        DynamicImage::ImageLuma8(_) => DynamicImage::ImageLuma8(ground.into_luma8()),
        _ => DynamicImage::ImageRgb8(ground.into_rgb8()),
    }
}

/// Applies the size and colour asked for to arrays that were stored as such.
pub(crate) fn apply(split: RawSplit, options: &OpenOptions) -> Result<RawSplit> {
    let shape = split.shape;
    let channels = match options.colour {
        Colour::AsFound => shape.channels(),
        Colour::Grey => 1,
        Colour::Rgb => 3,
    };
    let size = options.size.unwrap_or(Size::new(shape.height(), shape.width()));
    let wanted = ImageShape::new(size.height, size.width, channels).map_err(Error::data(&split.file))?;
    if wanted == shape {
        return Ok(split);
    }
    let unsupported =
        |what: &str, hint| Error::Unsupported { file: split.file.clone(), what: what.into(), hint };
    let Pixels::U8(bytes) = &split.pixels else {
        let hint = "Scale before saving, or save bytes 0..255";
        return Err(unsupported("changing size or colour of images with fractional pixels", hint));
    };
    if ![1, 3].contains(&shape.channels()) || ![1, 3].contains(&channels) {
        let hint = "Save one (grey) or three (RGB) channels";
        return Err(unsupported("changing size or colour of images with other than 1 or 3 channels", hint));
    }
    let pixels = bytes
        .chunks_exact(shape.len())
        .flat_map(|pixels| to_pixels(as_image(pixels, shape), wanted, size))
        .collect();
    Ok(RawSplit { shape: wanted, pixels: Pixels::U8(pixels), ..split })
}

/// One stored image for the `image` crate.
pub(crate) fn as_image(pixels: &[u8], shape: ImageShape) -> DynamicImage {
    let (h, w) = (shape.height() as u32, shape.width() as u32);
    let image = match shape.channels() {
        1 => GrayImage::from_raw(w, h, pixels.to_vec()).map(DynamicImage::ImageLuma8),
        _ => RgbImage::from_raw(w, h, pixels.to_vec()).map(DynamicImage::ImageRgb8),
    };
    image.expect("callers give one image of one or three channels")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(h: u32, w: u32) -> DynamicImage {
        DynamicImage::ImageLuma8(GrayImage::from_fn(w, h, |x, y| image::Luma([(10 * y + x) as u8])))
    }

    #[test]
    fn every_fit_gives_the_size_asked_for() {
        for f in [Fit::Crop, Fit::Stretch, Fit::Centre] {
            for (h, w, to_h, to_w) in
                [(5, 9, 3, 3), (1, 20, 7, 2), (9, 5, 12, 30), (4, 4, 4, 4), (1, 1, 1, 900)]
            {
                let size = Size { height: to_h, width: to_w, fit: f };
                let shape = ImageShape::new(to_h, to_w, 1).unwrap();
                assert_eq!(to_pixels(ramp(h, w), shape, size).len(), to_h * to_w, "{f:?} {h}x{w}");
            }
        }
    }

    #[test]
    fn the_centre_is_cut_out_or_bordered() {
        let size = |s| Size { height: s, width: s, fit: Fit::Centre };
        let shape = |s| ImageShape::new(s, s, 1).unwrap();
        assert_eq!(to_pixels(ramp(4, 4), shape(2), size(2)), [11, 12, 21, 22]);
        let out = to_pixels(ramp(2, 2), shape(4), size(4));
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 1, 0, 0, 10, 11, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_crop_keeps_proportions() {
        // Columns 2..6 of an 8-wide image remain, halved.
        let wide = DynamicImage::ImageLuma8(GrayImage::from_fn(8, 4, |x, _| {
            image::Luma([if x < 2 { 255 } else { 0 }])
        }));
        let out = to_pixels(wide, ImageShape::new(2, 2, 1).unwrap(), Size::new(2, 2));
        assert_eq!(out, [0; 4]);
    }
}
