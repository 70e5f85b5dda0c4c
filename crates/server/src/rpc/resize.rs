//! Growing a volume that is named either by its id or by its disk.

use storage_ops::{
    Coalesce, DiskNumber, LockKey, Node, Operation, OperationContext, OperationResult, PoolKind, ResizeFirstVolume,
    ResizeVolume, VolumeId,
};

/// What ResizeVolume asks for. The azuredisk driver since 1.30 sends a disk's number for the volume's id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resize {
    Volume(ResizeVolume),
    FirstOfDisk(ResizeFirstVolume),
}

impl Resize {
    pub(crate) fn parse(id: &str, size: u64) -> OperationResult<Self> {
        if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::FirstOfDisk(ResizeFirstVolume { disk: DiskNumber::parse(id)?, size }));
        }
        Ok(Self::Volume(ResizeVolume { volume: VolumeId::parse(id)?, size }))
    }
}

impl Operation for Resize {
    type Output = ();
    const NAME: &'static str = ResizeVolume::NAME;
    const POOL: PoolKind = ResizeVolume::POOL;
    const COALESCE: Coalesce = ResizeVolume::COALESCE;
    const RESOLVES_LOCKS: bool = ResizeVolume::RESOLVES_LOCKS;

    fn describe(&self) -> String {
        match self {
            Self::Volume(resize) => resize.describe(),
            Self::FirstOfDisk(resize) => resize.describe(),
        }
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        match self {
            Self::Volume(resize) => resize.lock_keys(node),
            Self::FirstOfDisk(resize) => resize.lock_keys(node),
        }
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        match self {
            Self::Volume(resize) => resize.run(node, ctx),
            Self::FirstOfDisk(resize) => resize.run(node, ctx),
        }
    }
}
