//! Growing a volume that is named either by its id or by its disk.

use storage_ops::{
    DiskNumber, Joins, Lane, Node, Object, Operation, Outcome, ResizeFirstVolume, ResizeVolume, Run, VolumeId,
};

/// What ResizeVolume asks for. The azuredisk driver since 1.30 sends a disk's number for the volume's id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resize {
    Volume(ResizeVolume),
    FirstOfDisk(ResizeFirstVolume),
}

impl Resize {
    pub(crate) fn parse(id: &str, size: u64) -> Outcome<Self> {
        if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::FirstOfDisk(ResizeFirstVolume { disk: DiskNumber::parse(id)?, size }));
        }
        Ok(Self::Volume(ResizeVolume { volume: VolumeId::parse(id)?, size }))
    }
}

impl Operation for Resize {
    type Output = ();
    const NAME: &'static str = ResizeVolume::NAME;
    const LANE: Lane = ResizeVolume::LANE;
    const JOINS: Joins = ResizeVolume::JOINS;
    const LOOKS_UP: bool = ResizeVolume::LOOKS_UP;

    fn attempt(&self) -> String {
        match self {
            Self::Volume(resize) => resize.attempt(),
            Self::FirstOfDisk(resize) => resize.attempt(),
        }
    }

    fn objects(&self, node: &Node) -> Outcome<Vec<Object>> {
        match self {
            Self::Volume(resize) => resize.objects(node),
            Self::FirstOfDisk(resize) => resize.objects(node),
        }
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        match self {
            Self::Volume(resize) => resize.run(node, run),
            Self::FirstOfDisk(resize) => resize.run(node, run),
        }
    }
}
