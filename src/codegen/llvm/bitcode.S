# The bitcode of the scalar functions (scalar_library.h), which the build makes.
  .section .rodata
  .balign 16
  .globl facula_bitcode_avx2, facula_bitcode_avx2_end
facula_bitcode_avx2:
  .incbin "scalar_avx2.bc"
facula_bitcode_avx2_end:
  .balign 16
  .globl facula_bitcode_avx512, facula_bitcode_avx512_end
facula_bitcode_avx512:
  .incbin "scalar_avx512.bc"
facula_bitcode_avx512_end:
  .section .note.GNU-stack,"",@progbits
