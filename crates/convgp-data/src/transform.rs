//! Size and colour of images.

use convgp::data::{ImageShape, Pixels};
use image::imageops::FilterType;
use image::{DynamicImage, ImageBuffer, Pixel};

use crate::error::{Error, Result};
use crate::loaded::RawSplit;
use crate::options::{Colour, Fit, OpenOptions, Size};

/// Numbers that pixels are stored as.
pub(crate) trait Depth: Copy + Default + Send {
    /// Pixels of the shape asked for, row-major with the channel last. Transparency is ignored.
    fn of(image: DynamicImage, shape: ImageShape, size: Size) -> Vec<Self>;
    /// The other way: one image of one or three channels.
    fn image(pixels: &[Self], shape: ImageShape) -> DynamicImage;
    /// Many of them.
    fn pixels(all: Vec<Self>) -> Pixels;
}

/// Colour first: grey images are then scaled as one channel, the same whatever they were stored as.
macro_rules! depth {
    ($number:ty, $pixels:ident, $luma:ident, $into_luma:ident, $rgb:ident, $into_rgb:ident) => {
        impl Depth for $number {
            fn of(image: DynamicImage, shape: ImageShape, size: Size) -> Vec<Self> {
                match shape.channels() {
                    1 => fit(DynamicImage::$luma(image.$into_luma()), size).$into_luma().into_raw(),
                    _ => fit(DynamicImage::$rgb(image.$into_rgb()), size).$into_rgb().into_raw(),
                }
            }
            fn image(pixels: &[Self], shape: ImageShape) -> DynamicImage {
                let (h, w) = (shape.height() as u32, shape.width() as u32);
                let image = match shape.channels() {
                    1 => ImageBuffer::from_raw(w, h, pixels.to_vec()).map(DynamicImage::$luma),
                    _ => ImageBuffer::from_raw(w, h, pixels.to_vec()).map(DynamicImage::$rgb),
                };
                image.expect("callers give one image of one or three channels")
            }
            fn pixels(all: Vec<Self>) -> Pixels {
                Pixels::$pixels(all)
            }
        }
    };
}
depth!(u8, U8, ImageLuma8, into_luma8, ImageRgb8, into_rgb8);
depth!(u16, U16, ImageLuma16, into_luma16, ImageRgb16, into_rgb16);

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
        Fit::Centre => match image {
            DynamicImage::ImageLuma8(image) => DynamicImage::ImageLuma8(centre(&image, to_h, to_w)),
            DynamicImage::ImageRgb8(image) => DynamicImage::ImageRgb8(centre(&image, to_h, to_w)),
            DynamicImage::ImageLuma16(image) => DynamicImage::ImageLuma16(centre(&image, to_h, to_w)),
            other => DynamicImage::ImageRgb16(centre(&other.into_rgb16(), to_h, to_w)),
        },
    }
}

/// The centre of the image on a black ground of the size wanted.
fn centre<P: Pixel>(
    image: &ImageBuffer<P, Vec<P::Subpixel>>,
    to_h: u32,
    to_w: u32,
) -> ImageBuffer<P, Vec<P::Subpixel>> {
    let offset = |have: u32, want: u32| (i64::from(want) - i64::from(have)).div_euclid(2);
    let mut ground = ImageBuffer::new(to_w, to_h);
    image::imageops::replace(&mut ground, image, offset(image.width(), to_w), offset(image.height(), to_h));
    ground
}

/// Makes grey images of RGB images without colour. Returns whether that was possible for all splits.
pub(crate) fn drop_idle_channels(splits: &mut [RawSplit]) -> bool {
    fn is_idle<T: PartialEq>(pixels: &[T]) -> bool {
        pixels.chunks_exact(3).all(|p| p[0] == p[1] && p[1] == p[2])
    }
    fn first_of_three<T: Copy>(pixels: &mut Vec<T>) {
        let len = pixels.len() / 3;
        (0..len).for_each(|i| pixels[i] = pixels[3 * i]);
        pixels.truncate(len);
        pixels.shrink_to_fit();
    }
    let idle = |s: &RawSplit| {
        s.shape.channels() == 3
            && match &s.pixels {
                Pixels::U8(v) => is_idle(v),
                Pixels::U16(v) => is_idle(v),
                Pixels::F32(v) => is_idle(v),
                Pixels::F64(v) => is_idle(v),
                Pixels::Lent(_) => false,
            }
    };
    if !splits.iter().all(idle) {
        return false;
    }
    for split in splits {
        match &mut split.pixels {
            Pixels::U8(v) => first_of_three(v),
            Pixels::U16(v) => first_of_three(v),
            Pixels::F32(v) => first_of_three(v),
            Pixels::F64(v) => first_of_three(v),
            Pixels::Lent(_) => {}
        }
        if let Ok(shape) = ImageShape::new(split.shape.height(), split.shape.width(), 1) {
            split.shape = shape;
        }
    }
    true
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
    if ![1, 3].contains(&shape.channels()) || ![1, 3].contains(&channels) {
        let hint = "Save one (grey) or three (RGB) channels";
        return Err(unsupported("changing size or colour of images with other than 1 or 3 channels", hint));
    }
    let pixels = match &split.pixels {
        Pixels::U8(v) => changed(v, shape, wanted, size),
        Pixels::U16(v) => changed(v, shape, wanted, size),
        _ => {
            let hint = "Scale before saving, or save whole numbers";
            return Err(unsupported("changing size or colour of images with fractional pixels", hint));
        }
    };
    Ok(RawSplit { shape: wanted, pixels, ..split })
}

fn changed<T: Depth>(pixels: &[T], from: ImageShape, to: ImageShape, size: Size) -> Pixels {
    let change = |image: &[T]| T::of(T::image(image, from), to, size);
    T::pixels(pixels.chunks_exact(from.len()).flat_map(change).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::GrayImage;

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
                assert_eq!(u8::of(ramp(h, w), shape, size).len(), to_h * to_w, "{f:?} {h}x{w}");
            }
        }
    }

    #[test]
    fn the_centre_is_cut_out_or_bordered() {
        let size = |s| Size { height: s, width: s, fit: Fit::Centre };
        let shape = |s| ImageShape::new(s, s, 1).unwrap();
        assert_eq!(u8::of(ramp(4, 4), shape(2), size(2)), [11, 12, 21, 22]);
        let out = u8::of(ramp(2, 2), shape(4), size(4));
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 1, 0, 0, 10, 11, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_crop_keeps_proportions() {
        // Columns 2..6 of an 8-wide image remain, halved.
        let wide = DynamicImage::ImageLuma8(GrayImage::from_fn(8, 4, |x, _| {
            image::Luma([if x < 2 { 255 } else { 0 }])
        }));
        let out = u8::of(wide, ImageShape::new(2, 2, 1).unwrap(), Size::new(2, 2));
        assert_eq!(out, [0; 4]);
    }
}
