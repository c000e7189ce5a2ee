//! A picture of some of the images.

use std::io::Cursor;

use convgp::data::{Dataset, PixelView, Targets};
use image::{DynamicImage, ImageFormat, RgbImage};

/// Grey between the images.
const GAP: u8 = 96;
/// Images smaller than this are enlarged by a whole factor.
const CELL: usize = 56;

/// A PNG with `rows` x `cols` images. For classification each row shows one class, in turn.
///
/// Pixels that are no bytes are scaled so that the smallest is black and the largest white. Cells without an image stay
/// grey.
pub fn contact_sheet(data: &Dataset, rows: usize, cols: usize) -> Vec<u8> {
    let shape = data.images().shape();
    let factor = (CELL / shape.height().max(shape.width())).max(1);
    let (cell_h, cell_w) = (shape.height() * factor + 2, shape.width() * factor + 2);
    let (height, width) = ((cell_h * rows.max(1)) as u32, (cell_w * cols.max(1)) as u32);
    let mut sheet = RgbImage::from_pixel(width, height, image::Rgb([GAP; 3]));
    let range = pixel_range(data);
    for (row, images) in chosen(data, rows, cols).into_iter().enumerate() {
        for (col, index) in images.into_iter().enumerate() {
            draw(&mut sheet, data, index, (row * cell_h + 1, col * cell_w + 1), factor, range);
        }
    }
    let mut png = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(sheet)
        .write_to(&mut png, ImageFormat::Png)
        .expect("writing a PNG of bytes into memory cannot fail");
    png.into_inner()
}

/// Indices of the images of each row.
fn chosen(data: &Dataset, rows: usize, cols: usize) -> Vec<Vec<usize>> {
    match data.targets() {
        Targets::Classes { labels, classes } => {
            let of_class = |class: usize| (0..labels.len()).filter(move |&i| labels[i] as usize == class);
            // When classes are shown more than once, later rows go on where earlier ones stopped.
            (0..rows).map(|r| of_class(r % classes).skip(r / classes * cols).take(cols).collect()).collect()
        }
        Targets::Real(values) => {
            (0..rows).map(|r| (r * cols..((r + 1) * cols).min(values.len())).collect()).collect()
        }
    }
}

/// Values shown as black and white.
fn pixel_range(data: &Dataset) -> (f64, f64) {
    let scale = data.images().scale();
    let (low, high) = match data.images().pixels().view() {
        PixelView::U8(_) => (0.0, 255.0),
        pixels => pixels.extremes(),
    };
    (scale.apply(low), scale.apply(high))
}

fn draw(
    sheet: &mut RgbImage,
    data: &Dataset,
    index: usize,
    (top, left): (usize, usize),
    factor: usize,
    (low, high): (f64, f64),
) {
    let shape = data.images().shape();
    let mut pixels = vec![0.0; shape.len()];
    data.images().write_image(index, &mut pixels);
    let scale = if high > low { 255.0 / (high - low) } else { 0.0 };
    let channels = shape.channels();
    for y in 0..shape.height() * factor {
        for x in 0..shape.width() * factor {
            let at = ((y / factor) * shape.width() + x / factor) * channels;
            // Grey for one or two channels, else the first three as colours.
            let colour = |c: usize| pixels[at + if channels >= 3 { c } else { 0 }];
            let byte = |c| ((colour(c) - low) * scale).round() as u8;
            sheet.put_pixel((left + x) as u32, (top + y) as u32, image::Rgb([byte(0), byte(1), byte(2)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_classes_and_the_png_can_be_read_back() {
        let data = crate::generate::rectangles(200, 0);
        let rows = chosen(&data, 4, 5);
        let Targets::Classes { labels, .. } = data.targets() else { panic!() };
        for (r, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), 5);
            assert!(row.iter().all(|&i| labels[i] as usize == r % 2));
        }
        assert_ne!(rows[0], rows[2]);
        let png = image::load_from_memory(&contact_sheet(&data, 4, 5)).unwrap();
        assert_eq!((png.height(), png.width()), (4 * 58, 5 * 58));
    }
}
