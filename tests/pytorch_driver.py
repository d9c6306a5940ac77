"""What  kaio-bench --dry-run --format=json --keep  says, in PyTorch's own context: PTX loaded through the driver, launched on
PyTorch's stream over PyTorch's tensors. For tests/pytorch.py and its like."""

import ctypes
import math
import os
import struct

PACK = {"i8": "b", "u8": "B", "bool": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
        "f16": "e", "f32": "f", "f64": "d"}


def pack(type_, value):
    """A scalar as the bytes of a kernel's argument."""
    if type_ == "bf16":
        return struct.pack("<f", value)[2:4]
    return struct.pack("<" + PACK[type_], value)


def find_bench():
    """kaio-bench of a build beside the tests, or of PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    built = [os.path.join(here, "..", d, "tools", "kaio-bench", "kaio-bench") for d in (".", "_b", "build")]
    return next((b for b in built if os.access(b, os.X_OK)), "kaio-bench")


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attrs", ctypes.POINTER(LaunchAttribute)), ("nattr", ctypes.c_uint)]


class Driver:
    """The few calls of libcuda.so.1 that it takes to load and launch PTX."""

    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")

    def check(self, result, what):
        if result != 0:
            name = ctypes.c_char_p()
            self.cu.cuGetErrorName(result, ctypes.byref(name))
            raise RuntimeError(f"{what}: {name.value.decode() if name.value else result}")

    def load(self, ptx):
        log = ctypes.create_string_buffer(16384)
        option = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, ..._SIZE_BYTES
        value = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(len(log)))
        module = ctypes.c_void_p()
        result = self.cu.cuModuleLoadDataEx(ctypes.byref(module), ptx + b"\0", 2, option, value)
        self.check(result, "cuModuleLoadDataEx: " + log.value.decode(errors="replace")[:400])
        return module

    def function(self, module, launch):
        f = ctypes.c_void_p()
        self.check(self.cu.cuModuleGetFunction(ctypes.byref(f), module, launch["entry"].encode()), launch["entry"])
        if launch["shared"]:
            self.check(self.cu.cuFuncSetAttribute(f, 8, launch["shared"]), "dynamic shared memory")
        if math.prod(launch.get("cluster", [1])) > 8:
            self.check(self.cu.cuFuncSetAttribute(f, 14, 1), "a cluster of more than 8 blocks")
        return f

    def launch(self, f, launch, params, stream):
        config = LaunchConfig((ctypes.c_uint * 3)(*launch["grid"]), (ctypes.c_uint * 3)(*launch["block"]),
                              launch["shared"], stream, None, 0)
        if "cluster" in launch:
            attr = LaunchAttribute(4)  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attr.value[0:3] = launch["cluster"]
            config.attrs = ctypes.pointer(attr)
            config.nattr = 1
        self.check(self.cu.cuLaunchKernelEx(ctypes.byref(config), f, params, None), launch["entry"])


# cuda.h: CUtensorMapDataType, ...Swizzle, ...Interleave, ...L2promotion, by what a plan says
MAP_TYPE = {"bool": 0, "u8": 0, "i8": 0, "e4m3": 0, "e5m2": 0, "u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5,
            "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "tf32": 11}
SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
INTERLEAVE = {0: 0, 16: 1, 32: 2}
PROMOTE = {0: 0, 64: 1, 128: 2, 256: 3}


def encode_map(driver, arg, address):
    """A tensor map at an address that 64 divides, and what keeps it alive."""
    memory = ctypes.create_string_buffer(192)
    at = (ctypes.addressof(memory) + 63) // 64 * 64
    rank = len(arg["dims"])
    u32, i32 = ctypes.c_uint32, ctypes.c_int32
    common = (ctypes.c_void_p(at), MAP_TYPE[arg["type"]], rank, ctypes.c_void_p(address + arg["at"]),
              (ctypes.c_uint64 * rank)(*arg["dims"]), (ctypes.c_uint64 * rank)(*arg["strides"]))
    tail = ((u32 * rank)(*arg["steps"]), INTERLEAVE[arg["interleave"]], SWIZZLE[arg["swizzle"]], PROMOTE[arg["promote"]],
            int(arg["fill"] == "nan"))
    if "lower" in arg:
        corner = i32 * (rank - 2)
        driver.check(driver.cu.cuTensorMapEncodeIm2col(
            *common, corner(*arg["lower"]), corner(*arg["upper"]), u32(arg["box"][0]), u32(arg["box"][1]), *tail),
            "cuTensorMapEncodeIm2col")
    else:
        driver.check(driver.cu.cuTensorMapEncodeTiled(*common, (u32 * rank)(*arg["box"]), *tail), "cuTensorMapEncodeTiled")
    return at, memory


class Launches:
    """The launches of a plan over the buffers of one set."""

    def __init__(self, driver, functions, plan, address):
        self.driver, self.functions, self.plan = driver, functions, plan
        self.keep, self.params = [], []
        for launch in plan["launches"]:
            cells = [self.cell(arg, address) for arg in launch["args"]]
            self.params.append((ctypes.c_void_p * max(len(cells), 1))(*cells))

    def cell(self, arg, address):
        """The address of an argument's bytes."""
        if arg["kind"] == "map":
            at, memory = encode_map(self.driver, arg, address[arg["name"]])
        else:
            if arg["kind"] in ("buffer", "temp", "messages"):
                data = struct.pack("<Q", address[arg.get("name", "$messages")])
            else:
                data = pack(arg["type"], arg["value"])
            memory = ctypes.create_string_buffer(data, max(len(data), 8))
            at = ctypes.addressof(memory)
        self.keep.append(memory)
        return at

    def enqueue(self, stream):
        for f, launch, params in zip(self.functions, self.plan["launches"], self.params):
            self.driver.launch(f, launch, params, stream)


def torch_type(torch, name):
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
            "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "u32": torch.int32, "i64": torch.int64,
            "u64": torch.int64, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bool": torch.uint8}[name]


class Kaio:
    """kaio's kernel over all sets; into outputs of its own, or into those of another with the same sets."""

    def __init__(self, torch, driver, row, inputs, outputs=None):
        plan = row.plan
        with open(plan["ptx"], "rb") as f:
            self.module = driver.load(f.read())
        functions = [driver.function(self.module, launch) for launch in plan["launches"]]
        self.driver, self.sets, self.outputs, self.keep, self.cleared = driver, [], [], [], []
        temps = {}
        for temp in plan.get("temps", []):
            # one will do: executions follow each other; kernels that want zeros leave zeros
            tensor = torch.zeros(max(temp["bytes"], 1), dtype=torch.uint8, device="cuda")
            temps[temp["name"]] = tensor.data_ptr()
            self.keep.append(tensor)
            if temp.get("each_run"):
                self.cleared.append(tensor)
        messages = torch.zeros(64, dtype=torch.uint8, device="cuda")
        temps["$messages"] = messages.data_ptr()
        self.keep.append(messages)
        for k, data in enumerate(inputs):
            address, given, made = dict(temps), iter(data), []
            theirs = iter(outputs[k]) if outputs else None
            for param in plan["params"]:
                if param["mode"] == "out":
                    tensor = next(theirs) if theirs else torch.empty(
                        param["shape"], dtype=torch_type(torch, param["type"]), device="cuda")
                    tensor.view(torch.uint8).fill_(0xff) if tensor.dim() else tensor.fill_(-1)
                    made.append(tensor)
                else:
                    tensor = next(given)
                address[param["name"]] = tensor.data_ptr()
            self.outputs.append(made)
            self.sets.append(Launches(driver, functions, plan, address))

    def enqueue(self, torch, k):
        for tensor in self.cleared:
            tensor.zero_()
        self.sets[k].enqueue(torch.cuda.current_stream().cuda_stream)

    def unload(self):
        self.driver.cu.cuModuleUnload(self.module)
