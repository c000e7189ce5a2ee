//! Kernels as data: what a spec file says.

use super::{Additive, Dims, Kernel, KernelError, Product, RADIALS, RadialFn, Stationary, Sum};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A lengthscale: given, per element, or found from the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lengthscale {
    /// One number for all elements.
    One(f64),
    /// One number per element.
    Each(Vec<f64>),
    /// `"median"`: the median distance between views sampled from the training data.
    Named(Median),
}

/// The word `median`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Median {
    /// Median distance between sampled views.
    Median,
}

impl Default for Lengthscale {
    fn default() -> Self {
        Lengthscale::One(1.0)
    }
}

/// A kernel. `type` is a radial family (`rbf`, `matern12`, `matern32`, `matern52`), or
/// - `sum`, `product`: of the kernels in `terms`;
/// - `additive`: one function per element of the view with shared parameters (paper section 2.3), of family `of`;
/// - `channels`: a sum of one kernel per colour channel of a colour patch, each with its own variance and lengthscale
///   (paper section 3.4, factorised weights), of family `of`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// Family or combination.
    #[serde(rename = "type")]
    pub kind: String,
    /// Initial variance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// Initial lengthscale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthscale: Option<Lengthscale>,
    /// One lengthscale per element.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ard: bool,
    /// The elements of the view it reads; all (but appended coordinates) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Dims>,
    /// Family of an `additive` or `channels` kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Parts of a sum or product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<KernelSpec>,
}

/// What a kernel may ask about the views it will read.
#[derive(Debug, Clone, Copy)]
pub struct ViewDims {
    /// Numbers in a view, without appended coordinates.
    pub len: usize,
    /// Interleaved colour channels in a view.
    pub channels: usize,
}

impl KernelSpec {
    /// A plain kernel of a radial family.
    pub fn radial(kind: &str, variance: f64, lengthscale: f64) -> Self {
        Self {
            kind: kind.into(),
            variance: Some(variance),
            lengthscale: Some(Lengthscale::One(lengthscale)),
            ard: false,
            dims: None,
            of: None,
            terms: Vec::new(),
        }
    }

    /// The kernel itself. `median` gives the lengthscale that `"median"` stands for, when it is known.
    pub fn build(&self, views: ViewDims, median: Option<f64>) -> Result<Arc<dyn Kernel>, KernelError> {
        let kernel: Arc<dyn Kernel> = match self.kind.as_str() {
            "sum" => Arc::new(Sum::new(self.parts(views, median)?)?),
            "product" => Arc::new(Product::new(self.parts(views, median)?)?),
            "additive" => Arc::new(self.additive(views, median)?),
            "channels" => Arc::new(self.channels(views, median)?),
            family => Arc::new(self.stationary(radial(family)?, views, median)?),
        };
        kernel.check_len(views.len)?;
        Ok(kernel)
    }

    /// A factor over the coordinates appended to a view, `dims`: no variance of its own.
    pub fn build_location(&self, dims: Dims) -> Result<Arc<dyn Kernel>, KernelError> {
        for (field, used) in [("variance", self.variance.is_some()), ("dims", self.dims.is_some())] {
            if used {
                return Err(KernelError::FieldNotUsed { field, kind: format!("location {}", self.kind) });
            }
        }
        let spec = Self { dims: Some(dims), ..self.clone() };
        let views = ViewDims { len: dims.start + dims.len, channels: 1 };
        Ok(Arc::new(spec.stationary(radial(&self.kind)?, views, None)?.without_variance()))
    }

    /// Whether a lengthscale is to be found from data.
    pub fn wants_median(&self) -> bool {
        matches!(self.lengthscale, Some(Lengthscale::Named(_))) || self.terms.iter().any(Self::wants_median)
    }

    fn parts(&self, views: ViewDims, median: Option<f64>) -> Result<Vec<Arc<dyn Kernel>>, KernelError> {
        self.refuse(&[
            ("variance", self.variance.is_some()),
            ("lengthscale", self.lengthscale.is_some()),
            ("ard", self.ard),
            ("dims", self.dims.is_some()),
            ("of", self.of.is_some()),
        ])?;
        self.terms.iter().map(|t| t.build(views, median)).collect()
    }

    fn stationary(
        &self,
        radial: &'static dyn RadialFn,
        views: ViewDims,
        median: Option<f64>,
    ) -> Result<Stationary, KernelError> {
        self.refuse(&[("terms", !self.terms.is_empty()), ("of", self.of.is_some())])?;
        let dims = self.dims.unwrap_or(Dims::all(views.len));
        dims.check(views.len)?;
        let kernel = Stationary::new(radial, dims, self.variance.unwrap_or(1.0), 1.0);
        match self.lengthscale.clone().unwrap_or_default() {
            Lengthscale::Each(each) => kernel.with_lengthscales(each),
            other if self.ard => kernel.with_lengthscales(vec![one(&other, median)?; dims.len]),
            other => Ok(Stationary::new(radial, dims, self.variance.unwrap_or(1.0), one(&other, median)?)),
        }
    }

    fn additive(&self, views: ViewDims, median: Option<f64>) -> Result<Additive, KernelError> {
        self.refuse(&[("terms", !self.terms.is_empty()), ("ard", self.ard)])?;
        let family = radial(self.of.as_deref().unwrap_or("rbf"))?;
        let ell = one(&self.lengthscale.clone().unwrap_or_default(), median)?;
        let dims = self.dims.unwrap_or(Dims::all(views.len));
        Ok(Additive::new(family, dims, self.variance.unwrap_or(1.0), ell))
    }

    fn channels(&self, views: ViewDims, median: Option<f64>) -> Result<Sum, KernelError> {
        self.refuse(&[("terms", !self.terms.is_empty()), ("ard", self.ard), ("dims", self.dims.is_some())])?;
        let family = radial(self.of.as_deref().unwrap_or("rbf"))?;
        let ell = one(&self.lengthscale.clone().unwrap_or_default(), median)?;
        let variance = self.variance.unwrap_or(1.0);
        let part = |c| {
            let dims = Dims { start: c, len: views.len / views.channels, step: views.channels };
            Arc::new(Stationary::new(family, dims, variance, ell)) as Arc<dyn Kernel>
        };
        Sum::new((0..views.channels).map(part).collect())
    }

    fn refuse(&self, fields: &[(&'static str, bool)]) -> Result<(), KernelError> {
        match fields.iter().find(|(_, used)| *used) {
            Some(&(field, _)) => Err(KernelError::FieldNotUsed { field, kind: self.kind.clone() }),
            None => Ok(()),
        }
    }
}

fn one(lengthscale: &Lengthscale, median: Option<f64>) -> Result<f64, KernelError> {
    match lengthscale {
        Lengthscale::One(ell) => Ok(*ell),
        Lengthscale::Each(each) => Err(KernelError::LengthscaleCount { found: each.len(), expected: 1 }),
        Lengthscale::Named(Median::Median) => median.ok_or(KernelError::MedianWithoutData),
    }
}

fn radial(family: &str) -> Result<&'static dyn RadialFn, KernelError> {
    RADIALS.iter().find(|(name, _)| *name == family).map(|(_, r)| *r).ok_or_else(|| {
        KernelError::UnknownType {
            name: family.into(),
            known: RADIALS
                .iter()
                .map(|(name, _)| *name)
                .chain(["sum", "product", "additive", "channels"])
                .map(String::from)
                .collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str) -> Result<Arc<dyn Kernel>, KernelError> {
        let spec: KernelSpec = toml::from_str(text).expect("valid TOML");
        spec.build(ViewDims { len: 6, channels: 3 }, Some(2.5))
    }

    #[test]
    fn specs_build_what_they_say() {
        assert_eq!(build("type = 'rbf'").unwrap().parameters().len(), 2);
        let median = build("type = 'rbf'\nlengthscale = 'median'").unwrap();
        assert_eq!(median.parameters()[1].values, [2.5]);
        let ard = build("type = 'matern32'\nard = true\nlengthscale = 2.0").unwrap();
        assert_eq!(ard.parameters()[1].values, [2.0; 6]);
        assert_eq!(build("type = 'channels'").unwrap().parameters().len(), 6);
        let sum = build(
            "type = 'sum'\nterms = [{ type = 'rbf', dims = { start = 0, len = 3 } }, { type = 'matern12', dims = { start = 3, len = 3 } }]",
        );
        let names: Vec<String> = sum.unwrap().parameters().into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["0.variance", "0.lengthscale", "1.variance", "1.lengthscale"]);
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = build("type = 'rbff'").unwrap_err();
        assert!(unknown.to_string().contains("rbff") && unknown.to_string().contains("matern52"));
        assert!(matches!(build("type = 'sum'"), Err(KernelError::NoTerms { kind: "sum" })));
        let out = build("type = 'rbf'\ndims = { start = 4, len = 3 }").unwrap_err();
        assert_eq!(out, KernelError::DimsOutOfRange { start: 4, end: 7, len: 6 });
        let unused = build("type = 'sum'\nvariance = 1.0\nterms = [{ type = 'rbf' }]").unwrap_err();
        assert!(matches!(unused, KernelError::FieldNotUsed { field: "variance", .. }));
        assert!(toml::from_str::<KernelSpec>("type = 'rbf'\nlenghtscale = 1.0").is_err());
        assert!(matches!(
            build("type = 'rbf'\nlengthscale = [1.0, 2.0]"),
            Err(KernelError::LengthscaleCount { found: 2, expected: 6 })
        ));
    }
}
