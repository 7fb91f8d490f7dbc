"""Writes GGUF version 3: typed metadata, then tensors at multiples of 32 bytes."""

import struct

ALIGNMENT = 32
F32, Q8_0, MXFP4 = 0, 8, 39
_SCALARS = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Writer:
    def __init__(self):
        self.metadata, self.tensors = [], []

    def add(self, key, kind, value):
        """A value of kind u32, i32, f32, bool or str, or a list of them as [kind]."""
        if isinstance(kind, list):
            code = 8 if kind[0] == "str" else _SCALARS[kind[0]][0]
            body = struct.pack("<IQ", code, len(value)) + b"".join(self._value(kind[0], v)[1] for v in value)
            encoded = (9, body)
        else:
            encoded = self._value(kind, value)
        self.metadata.append((key, *encoded))

    @staticmethod
    def _value(kind, value):
        if kind == "str":
            return 8, _string(value)
        code, form = _SCALARS[kind]
        return code, struct.pack(form, value)

    def tensor(self, name, shape, kind, data):
        """A tensor with its slowest axis first in `shape`; the file lists the fastest first."""
        self.tensors.append((name, shape, kind, data))

    def write(self, path):
        head = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata))]
        for key, code, body in self.metadata:
            head += [_string(key), struct.pack("<I", code), body]
        offset = 0
        for name, shape, kind, data in self.tensors:
            head.append(_string(name) + struct.pack("<I", len(shape)))
            head.append(struct.pack(f"<{len(shape)}QIQ", *reversed(shape), kind, offset))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
        head = b"".join(head)
        with open(path, "wb") as file:
            file.write(head + bytes(-len(head) % ALIGNMENT))
            for *_, data in self.tensors:
                file.write(data + bytes(-len(data) % ALIGNMENT))
