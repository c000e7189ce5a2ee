//! Every file in `specs/` describes a model that can be built and a training run that can be started.

use convgp::Model;
use convgp::data::{Images, Pixels};
use convgp::rng::Rng;
use convgp::train::ExperimentSpec;

#[test]
fn every_spec_builds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/specs");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let spec = ExperimentSpec::from_toml(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        spec.train.check().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let rng = &mut Rng::new(1);
        let shape = spec.model.image;
        let pixels = (0..1100 * shape.len()).map(|_| rng.bits() as u8).collect();
        let images = Images::new(shape, Pixels::U8(pixels)).unwrap();
        let (model, values) =
            Model::new(&spec.model, Some(&images), rng).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(values.len(), model.layout().len());
        count += 1;
    }
    assert!(count >= 13, "only {count} specs found");
}
