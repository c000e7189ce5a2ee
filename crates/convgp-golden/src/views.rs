//! `components[i].views` as [`Views`].

use crate::GoldenError;
use crate::error::At;
use crate::node::Node;
use convgp::data::ImageShape;
use convgp::views::{Channels, ImageMap, Orbit, Views, Windows};
use std::sync::Arc;

/// The views a file describes, of images of this shape.
pub fn read_views(node: &Node, image: ImageShape) -> Result<Arc<dyn Views>, GoldenError> {
    let kind = node.get("type")?;
    Ok(match kind.text()? {
        "image" => Arc::new(Windows::image(image)),
        "patches" => Arc::new(windows(node, channels(&node.get("channels")?)?, image)?),
        "patches_located" => {
            let channels = node.find("channels").map_or(Ok(Channels::All), |c| channels(&c))?;
            Arc::new(windows(node, channels, image)?.location_aware())
        }
        "orbit" => Arc::new(orbit(node, image)?),
        other => return Err(kind.refuse(format!("is `{other}`, which the schema does not have"))),
    })
}

fn channels(node: &Node) -> Result<Channels, GoldenError> {
    match node.text() {
        Ok("pooled") => Ok(Channels::Pooled),
        Ok("all") => Ok(Channels::All),
        Ok(other) => Err(node.refuse(format!("is `{other}`; expected `pooled`, `all` or a channel"))),
        Err(_) => Ok(Channels::Only(node.whole()?)),
    }
}

fn windows(node: &Node, channels: Channels, image: ImageShape) -> Result<Windows, GoldenError> {
    let patch = node.get("patch")?;
    let sides = patch.list_of(2)?;
    Windows::new(image, (sides[0].whole()?, sides[1].whole()?), (1, 1), channels).at(node.path())
}

fn orbit(node: &Node, image: ImageShape) -> Result<Orbit, GoldenError> {
    let mut maps = Vec::new();
    for perm in node.get("perms")?.list()? {
        let table = perm.list()?.iter().map(Node::whole).collect::<Result<Vec<_>, _>>()?;
        maps.push(ImageMap::from_permutation(image, perm.path(), &table).at(perm.path())?);
    }
    Orbit::new(maps, Windows::image(image)).at(node.path())
}
