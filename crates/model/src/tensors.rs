//! Tensors taken from a file by name, with their shape checked and their role noted.
//!
//! Invariant: every tensor of the file is taken exactly by the family that needs it; what is left over is
//! reported, so that nothing is ignored in silence.

use std::collections::HashMap;

use turbospark_format::Gguf;

use crate::ModelError;

/// What a tensor is for. Sizes are summed by it, and residency will be decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Token embeddings; also the head where the two are tied.
    Embedding,
    /// Projections and biases of attention.
    Attention,
    /// Projections of the feed-forward.
    FeedForward,
    /// Matrices of routed experts, of which a row uses a few.
    Expert,
    /// What chooses experts: projection, bias, correction, scales.
    Router,
    /// Projections, convolution and decay of recurrent mixers.
    Recurrent,
    /// Norm weights.
    Norm,
    /// Tables of rotary frequencies.
    Rotary,
    /// The projection to the vocabulary.
    Head,
    /// Known and without part in the logits, as the blocks that predict further tokens.
    Unused,
}

impl Role {
    /// A word or two for people.
    pub fn name(self) -> &'static str {
        match self {
            Role::Embedding => "embedding",
            Role::Attention => "attention",
            Role::FeedForward => "feed-forward",
            Role::Expert => "experts",
            Role::Router => "router",
            Role::Recurrent => "recurrent",
            Role::Norm => "norm",
            Role::Rotary => "rotary",
            Role::Head => "head",
            Role::Unused => "unused",
        }
    }
}

/// A tensor of the file whose shape has been checked: its index in `Gguf::tensors()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorRef {
    /// Index in `Gguf::tensors()`.
    pub index: usize,
    /// What it is for.
    pub role: Role,
}

/// The tensors of a file, each ticked off when a family takes it.
pub(crate) struct Tensors<'a> {
    gguf: &'a Gguf,
    architecture: &'a str,
    by_name: HashMap<&'a str, usize>,
    roles: Vec<Option<Role>>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(gguf: &'a Gguf, architecture: &'a str) -> Self {
        let by_name = gguf.tensors().iter().enumerate().map(|(i, t)| (t.name.as_str(), i)).collect();
        Tensors { gguf, architecture, by_name, roles: vec![None; gguf.tensors().len()] }
    }

    pub(crate) fn shape(&self, name: &str) -> Option<&'a [usize]> {
        self.by_name.get(name).map(|&i| self.gguf.tensors()[i].shape.as_slice())
    }

    /// Takes the tensor `name` of exactly `shape` (innermost first), if the file has one of that name.
    pub(crate) fn optional(
        &mut self,
        name: &str,
        shape: &[usize],
        role: Role,
    ) -> Result<Option<TensorRef>, ModelError> {
        let Some(&index) = self.by_name.get(name) else { return Ok(None) };
        let found = &self.gguf.tensors()[index].shape;
        // Writers differ in whether they keep trailing dimensions of 1.
        let (head, rest) = found.split_at(shape.len().min(found.len()));
        if head != shape || rest.iter().any(|&d| d != 1) {
            let (expected, found) = (shape.to_vec(), found.clone());
            return Err(ModelError::WrongShape { name: name.to_owned(), expected, found });
        }
        self.roles[index].get_or_insert(role);
        Ok(Some(TensorRef { index, role }))
    }

    /// As [`Tensors::optional`], and an error if it is not there.
    pub(crate) fn require(
        &mut self,
        name: &str,
        shape: &[usize],
        role: Role,
    ) -> Result<TensorRef, ModelError> {
        self.optional(name, shape, role)?.ok_or_else(|| ModelError::MissingTensor {
            name: name.to_owned(),
            expected: shape.to_vec(),
            architecture: self.architecture.to_owned(),
        })
    }

    /// Takes what is left of the blocks from `first` to before `end`, none of which has a part in the logits.
    pub(crate) fn ignore_blocks(&mut self, first: usize, end: usize) {
        for (role, tensor) in self.roles.iter_mut().zip(self.gguf.tensors()) {
            let number = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split('.').next());
            let block = number.and_then(|n| n.parse::<usize>().ok());
            if role.is_none() && block.is_some_and(|n| (first..end).contains(&n)) {
                *role = Some(Role::Unused);
            }
        }
    }

    /// Takes the tensor `name`, if the file has it, as one without part in the logits.
    pub(crate) fn ignore(&mut self, name: &str) {
        if let Some(&index) = self.by_name.get(name) {
            self.roles[index].get_or_insert(Role::Unused);
        }
    }

    /// The role of every tensor in file order, or an error that names the first that was not taken.
    pub(crate) fn finish(self) -> Result<Vec<Role>, ModelError> {
        let unused: Vec<usize> = (0..self.roles.len()).filter(|&i| self.roles[i].is_none()).collect();
        if let Some(&first) = unused.first() {
            return Err(ModelError::UnusedTensors {
                architecture: self.architecture.to_owned(),
                first: self.gguf.tensors()[first].name.clone(),
                count: unused.len(),
            });
        }
        Ok(self.roles.into_iter().flatten().collect())
    }
}
