"""What methods of tensors do, by their names, as far as the host's part of a step asks."""

#: Methods that tell about a tensor without reading it.
METADATA = frozenset(
    "size stride dim ndimension numel nelement element_size storage_offset is_contiguous is_floating_point is_complex"
    " is_conj is_neg is_signed is_pinned is_shared is_set_to is_inference is_same_size is_tensor _is_view data_ptr"
    " get_device untyped_storage __len__ __hash__".split()
)

#: What shows a tensor in another way, or as another type, or on another device.
SHOWN = frozenset(
    "to ltc as_tensor view reshape flatten unflatten squeeze unsqueeze transpose permute contiguous t narrow expand"
    " detach clone float double half bfloat16 long int bool __getitem__".split()
)

#: What takes CPU tensors to the device, and what uses them there.
MOVES, USES = frozenset(("to", "ltc", "as_tensor")), frozenset(("to", "copy_", "__setitem__", "__getitem__"))
#: What asks for no more than a tensor's shape or type.
LIKE = frozenset(("to", "type_as", "expand_as", "view_as", "reshape_as", "is_same_size"))

#: What tells about a tensor's memory and history.
OF_MEMORY = frozenset("untyped_storage storage _typed_storage data_ptr _version _base output_nr _cdata".split())
#: What tells where a tensor is.
PLACES = frozenset(("data_ptr", "untyped_storage", "get_device", "__hash__", "__set__"))
