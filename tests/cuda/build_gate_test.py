# SPDX-License-Identifier: Apache-2.0
"""What tools/cuda_build.py refuses, planted line by line; and what it must let through."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import cuda_build  # noqa: E402

BAD_PTX = ["ex2.approx.f32 %f1, %f2;", "ex2.approx.ftz.f32 %f1, %f2;", "add.f32 %f1, %f2, %f3;",
           "@%p1 mul.f32 %f1, %f2, %f3;", "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;", "mad.f32 %f1, %f2, %f3, %f4;",
           "div.approx.f32 %f1, %f2, %f3;", "div.full.f32 %f1, %f2, %f3;", "sqrt.approx.f32 %f1, %f2;",
           "rsqrt.approx.f32 %f1, %f2;", "add.rz.f32 %f1, %f2, %f3;", "add.rn.f64 %fd1, %fd2, %fd3;",
           "cvt.rz.f16.f32 %rs1, %f1;", "setp.lt.ftz.f32 %p1, %f1, %f2;", ".local .align 4 .b8 a[4];"]
GOOD_PTX = ["add.rn.f32 %f1, %f2, %f3;", "fma.rn.f32 %f1, %f2, %f3, %f4;", "div.rn.f32 %f1, %f2, %f3;",
            "@!%p2 mul.rn.f32 %f1, %f2, %f3;", "sqrt.rn.f32 %f1, %f2;", "cvt.rn.f32.s32 %f1, %r1;",
            "cvt.rzi.s32.f32 %r1, %f1;", "cvt.f32.f16 %f1, %rs1;", "cvt.rn.f16.f32 %rs1, %f1;",
            "add.s32 %r1, %r2, %r3;",
            "mov.f32 %f1, 0f3F800000;", "setp.lt.f32 %p1, %f1, %f2;", "ld.global.f32 %f1, [%rd1];"]
BAD_SASS = ["MUFU.EX2 R1, R2 ;", "@P0 MUFU.LG2 R1, R2 ;", "FFMA.FTZ R1, R2, R3, R4 ;", "LDL R1, [R2] ;",
            "STL.64 [R1], R2 ;", "FMNMX.FTZ R1, R2, R3, PT ;", "@!UP0 MUFU.SIN R1, R2 ;"]
GOOD_SASS = ["MUFU.RCP R1, R2 ;", "MUFU.RSQ R1, R2 ;", "FFMA R1, R2, R3, R4 ;", "FADD.FTZ R1, R2, R3 ;",
             "F2I.FTZ.U32.TRUNC.NTZ R1, R2 ;", "FSETP.GEU.FTZ.AND P0, PT, R1, R2, PT ;", "HFMA2.MMA R1, -RZ, RZ, 0, 0 ;"]


def log(name="k", registers=40, stack=0, stores=0):
    return (f"ptxas info    : Compiling entry function '{name}' for 'sm_80'\n"
            f"ptxas info    : Function properties for {name}\n"
            f"    {stack} bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads\n"
            f"ptxas info    : Used {registers} registers, used 1 barriers\n")


def main():
    wrong = []
    for line in BAD_PTX:
        if not list(cuda_build.bad_ptx(f".visible .entry k(\n\t{line}\n")):
            wrong.append(f"passed: {line}")
    wrong += [f"refused: {line}" for line in GOOD_PTX if list(cuda_build.bad_ptx(f"\t{line}\n"))]
    for line in BAD_SASS:
        if not list(cuda_build.bad_sass(f".text.k:\n        /*0010*/                   {line}\n")):
            wrong.append(f"passed: {line}")
    wrong += [f"refused: {line}" for line in GOOD_SASS
              if list(cuda_build.bad_sass(f"        /*0010*/                   {line}\n"))]
    budget = {"k": 40}
    for text, fits in ((log(), True), (log(registers=41), False), (log(stack=32), False),
                       (log(stores=8), False), (log("other") + log(), False), ("", False)):
        if (not list(cuda_build.bad_resources(text, budget))) != fits:
            wrong.append(f"resources judged wrongly: {text}")
    print("\n".join(wrong) or f"{len(BAD_PTX) + len(BAD_SASS)} planted lines refused")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
