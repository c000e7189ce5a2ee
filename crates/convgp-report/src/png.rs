//! SVG to PNG with the built-in font.

use crate::ReportError;
use resvg::usvg::{Options, Tree, fontdb::Database};
use resvg::{tiny_skia, tiny_skia::Transform};
use std::sync::Arc;

/// Pixels per unit of the drawing.
const SCALE: f32 = 2.0;

/// Draws figures; reads the font once.
pub(crate) struct Renderer {
    options: Options<'static>,
}

impl Renderer {
    /// Reads the font.
    pub fn new() -> Self {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } }
    }

    /// The figure on white, as a PNG file.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, ReportError> {
        let problem = |what: &dyn std::fmt::Display| ReportError::Draw(format!("PNG: {what}"));
        let tree = Tree::from_str(svg, &self.options).map_err(|e| problem(&e))?;
        let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| problem(&"no size"))?;
        let mut canvas =
            tiny_skia::Pixmap::new(size.width(), size.height()).ok_or_else(|| problem(&"too large"))?;
        canvas.fill(tiny_skia::Color::WHITE);
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut canvas.as_mut());
        canvas.encode_png().map_err(|e| problem(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::{Anchor, draw, text};
    use crate::style::{INK, NORMAL};

    #[test]
    fn text_is_drawn_without_fonts_of_the_machine() {
        let svg = draw((80, 30), |area, _| text(area, "Hello", (10, 15), Anchor::Left, NORMAL, INK)).unwrap();
        let png = Renderer::new().png(&svg).unwrap();
        let picture = image::load_from_memory(&png).unwrap().to_luma8();
        assert_eq!(picture.dimensions(), (160, 60));
        let dark = picture.pixels().filter(|p| p.0[0] < 100).count();
        assert!(dark > 100, "only {dark} dark pixels");
    }
}
