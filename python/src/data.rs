//! Arrays as images, used where they lie.

use crate::failure::{Failure, Outcome};
use convgp::data::{DataError, Dataset, ImageShape, Images, PixelOwner, PixelView, Pixels, Targets};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;

/// Images with or without targets. Holds on to the arrays it was made from: they must not be written to while work on
/// them goes on.
#[pyclass(module = "convgp._convgp", frozen)]
#[derive(Debug)]
pub struct Data {
    pub images: Images,
    pub targets: Option<Targets>,
    pub class_names: Vec<String>,
}

#[pymethods]
impl Data {
    /// `pixels` is a contiguous array of uint8, uint16, float32 or float64 that holds one image after the other; it is not copied.
    /// Targets are `labels`, numbers into `class_names`, or real `values`.
    #[new]
    #[pyo3(signature = (pixels, shape, *, labels=None, class_names=None, values=None))]
    fn new(
        pixels: &Bound<'_, PyAny>,
        shape: (usize, usize, usize),
        labels: Option<PyReadonlyArray1<'_, u32>>,
        class_names: Option<Vec<String>>,
        values: Option<PyReadonlyArray1<'_, f64>>,
    ) -> Outcome<Self> {
        let shape = ImageShape::new(shape.0, shape.1, shape.2)?;
        let images = Images::new(shape, lend(pixels)?)?;
        let class_names = class_names.unwrap_or_default();
        let targets = match (labels, values) {
            (Some(labels), _) => Some(Targets::classes(labels.as_array().to_vec(), class_names.len())?),
            (None, Some(values)) => Some(Targets::real(values.as_array().to_vec())?),
            (None, None) => None,
        };
        match &targets {
            Some(t) if t.len() != images.count() => {
                Err(DataError::TargetCount { images: images.count(), targets: t.len() }.into())
            }
            _ => Ok(Self { images, targets, class_names }),
        }
    }

    fn __len__(&self) -> usize {
        self.images.count()
    }

    /// The first `count` images, without targets.
    fn first(&self, count: usize) -> Outcome<Self> {
        let some: Vec<usize> = (0..self.images.count().min(count)).collect();
        Ok(Self { images: self.images.select(&some)?, targets: None, class_names: Vec::new() })
    }

    /// Height, width and channels.
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        let shape = self.images.shape();
        (shape.height(), shape.width(), shape.channels())
    }
}

impl Data {
    /// Images with their targets.
    pub fn dataset(&self) -> Outcome<Dataset> {
        let targets =
            self.targets.clone().ok_or_else(|| Failure::Value("the images have no targets".into()))?;
        let data = Dataset::new(self.images.clone(), targets)?;
        Ok(if self.class_names.is_empty() { data } else { data.with_class_names(self.class_names.clone())? })
    }
}

/// The memory of a numpy array.
#[derive(Debug)]
struct Lent<T> {
    /// Keeps the memory alive.
    _array: Py<PyAny>,
    start: *const T,
    len: usize,
}

// SAFETY: only read, and the array that owns the memory lives as long as this does.
unsafe impl<T: Sync> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Lent<T> {}

impl<T> Lent<T> {
    fn numbers(&self) -> &[T] {
        // SAFETY: `start` and `len` are those of a contiguous array that `_array` keeps alive.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

macro_rules! lend_as {
    ($($number:ty => $view:ident),*) => {
        $(impl PixelOwner for Lent<$number> {
            fn pixels(&self) -> PixelView<'_> {
                PixelView::$view(self.numbers())
            }
        })*
        fn lend(array: &Bound<'_, PyAny>) -> Outcome<Pixels> {
            $(if let Ok(array) = array.cast::<PyArrayDyn<$number>>() {
                return lend_array(array);
            })*
            Err(Failure::Value("images must be an array of uint8, uint16, float32 or float64".into()))
        }
    };
}

lend_as!(f32 => F32, u8 => U8, u16 => U16, f64 => F64);

fn lend_array<T: Element + std::fmt::Debug + Sync + 'static>(
    array: &Bound<'_, PyArrayDyn<T>>,
) -> Outcome<Pixels>
where
    Lent<T>: PixelOwner,
{
    if !array.is_c_contiguous() {
        return Err(Failure::Value("the array is not contiguous; use numpy.ascontiguousarray".into()));
    }
    if array.is_empty() {
        return Err(DataError::Empty.into());
    }
    let lent = Lent {
        _array: array.clone().into_any().unbind(),
        start: array.data().cast_const(),
        len: array.len(),
    };
    Ok(Pixels::Lent(Arc::new(lent)))
}
