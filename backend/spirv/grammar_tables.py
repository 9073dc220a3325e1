"""The instructions, operand kinds and extended instruction sets of SPIR-V, a row each; grammar.py reads them.

Written by tests/unit/spirv/derive_grammar.py from the grammar in Khronos' SPIRV-Headers, version 1.6 revision
7, which is under the MIT licence, copyright 2014 The Khronos Group Inc. Do not edit.
"""
# ruff: noqa: E501

INSTRUCTIONS = """\
0 Nop
1 Undef IdResultType IdResult
2 SourceContinued LiteralString
3 Source SourceLanguage LiteralInteger IdRef? LiteralString?
4 SourceExtension LiteralString
5 Name IdRef LiteralString
6 MemberName IdRef LiteralInteger LiteralString
7 String IdResult LiteralString
8 Line IdRef LiteralInteger LiteralInteger
10 Extension LiteralString
11 ExtInstImport IdResult LiteralString
12 ExtInst IdResultType IdResult IdRef LiteralExtInstInteger IdRef*
14 MemoryModel AddressingModel MemoryModel
15 EntryPoint ExecutionModel IdRef LiteralString IdRef*
16 ExecutionMode IdRef ExecutionMode
17 Capability Capability
19 TypeVoid IdResult
20 TypeBool IdResult
21 TypeInt IdResult LiteralInteger LiteralInteger
22 TypeFloat IdResult LiteralInteger FPEncoding?
23 TypeVector IdResult IdRef LiteralInteger
24 TypeMatrix IdResult IdRef LiteralInteger
25 TypeImage IdResult IdRef Dim LiteralInteger LiteralInteger LiteralInteger LiteralInteger ImageFormat AccessQualifier?
26 TypeSampler IdResult
27 TypeSampledImage IdResult IdRef
28 TypeArray IdResult IdRef IdRef
29 TypeRuntimeArray IdResult IdRef
30 TypeStruct IdResult IdRef*
31 TypeOpaque IdResult LiteralString
32 TypePointer IdResult StorageClass IdRef
33 TypeFunction IdResult IdRef IdRef*
34 TypeEvent IdResult
35 TypeDeviceEvent IdResult
36 TypeReserveId IdResult
37 TypeQueue IdResult
38 TypePipe IdResult AccessQualifier
39 TypeForwardPointer IdRef StorageClass
41 ConstantTrue IdResultType IdResult
42 ConstantFalse IdResultType IdResult
43 Constant IdResultType IdResult LiteralContextDependentNumber
44 ConstantComposite IdResultType IdResult IdRef*
45 ConstantSampler IdResultType IdResult SamplerAddressingMode LiteralInteger SamplerFilterMode
46 ConstantNull IdResultType IdResult
48 SpecConstantTrue IdResultType IdResult
49 SpecConstantFalse IdResultType IdResult
50 SpecConstant IdResultType IdResult LiteralContextDependentNumber
51 SpecConstantComposite IdResultType IdResult IdRef*
52 SpecConstantOp IdResultType IdResult LiteralSpecConstantOpInteger
54 Function IdResultType IdResult FunctionControl IdRef
55 FunctionParameter IdResultType IdResult
56 FunctionEnd
57 FunctionCall IdResultType IdResult IdRef IdRef*
59 Variable IdResultType IdResult StorageClass IdRef?
60 ImageTexelPointer IdResultType IdResult IdRef IdRef IdRef
61 Load IdResultType IdResult IdRef MemoryAccess?
62 Store IdRef IdRef MemoryAccess?
63 CopyMemory IdRef IdRef MemoryAccess? MemoryAccess?
64 CopyMemorySized IdRef IdRef IdRef MemoryAccess? MemoryAccess?
65 AccessChain IdResultType IdResult IdRef IdRef*
66 InBoundsAccessChain IdResultType IdResult IdRef IdRef*
67 PtrAccessChain IdResultType IdResult IdRef IdRef IdRef*
68 ArrayLength IdResultType IdResult IdRef LiteralInteger
69 GenericPtrMemSemantics IdResultType IdResult IdRef
70 InBoundsPtrAccessChain IdResultType IdResult IdRef IdRef IdRef*
71 Decorate IdRef Decoration
72 MemberDecorate IdRef LiteralInteger Decoration
73 DecorationGroup IdResult
74 GroupDecorate IdRef IdRef*
75 GroupMemberDecorate IdRef PairIdRefLiteralInteger*
77 VectorExtractDynamic IdResultType IdResult IdRef IdRef
78 VectorInsertDynamic IdResultType IdResult IdRef IdRef IdRef
79 VectorShuffle IdResultType IdResult IdRef IdRef LiteralInteger*
80 CompositeConstruct IdResultType IdResult IdRef*
81 CompositeExtract IdResultType IdResult IdRef LiteralInteger*
82 CompositeInsert IdResultType IdResult IdRef IdRef LiteralInteger*
83 CopyObject IdResultType IdResult IdRef
84 Transpose IdResultType IdResult IdRef
86 SampledImage IdResultType IdResult IdRef IdRef
87 ImageSampleImplicitLod IdResultType IdResult IdRef IdRef ImageOperands?
88 ImageSampleExplicitLod IdResultType IdResult IdRef IdRef ImageOperands
89 ImageSampleDrefImplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands?
90 ImageSampleDrefExplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands
91 ImageSampleProjImplicitLod IdResultType IdResult IdRef IdRef ImageOperands?
92 ImageSampleProjExplicitLod IdResultType IdResult IdRef IdRef ImageOperands
93 ImageSampleProjDrefImplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands?
94 ImageSampleProjDrefExplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands
95 ImageFetch IdResultType IdResult IdRef IdRef ImageOperands?
96 ImageGather IdResultType IdResult IdRef IdRef IdRef ImageOperands?
97 ImageDrefGather IdResultType IdResult IdRef IdRef IdRef ImageOperands?
98 ImageRead IdResultType IdResult IdRef IdRef ImageOperands?
99 ImageWrite IdRef IdRef IdRef ImageOperands?
100 Image IdResultType IdResult IdRef
101 ImageQueryFormat IdResultType IdResult IdRef
102 ImageQueryOrder IdResultType IdResult IdRef
103 ImageQuerySizeLod IdResultType IdResult IdRef IdRef
104 ImageQuerySize IdResultType IdResult IdRef
105 ImageQueryLod IdResultType IdResult IdRef IdRef
106 ImageQueryLevels IdResultType IdResult IdRef
107 ImageQuerySamples IdResultType IdResult IdRef
109 ConvertFToU IdResultType IdResult IdRef
110 ConvertFToS IdResultType IdResult IdRef
111 ConvertSToF IdResultType IdResult IdRef
112 ConvertUToF IdResultType IdResult IdRef
113 UConvert IdResultType IdResult IdRef
114 SConvert IdResultType IdResult IdRef
115 FConvert IdResultType IdResult IdRef
116 QuantizeToF16 IdResultType IdResult IdRef
117 ConvertPtrToU IdResultType IdResult IdRef
118 SatConvertSToU IdResultType IdResult IdRef
119 SatConvertUToS IdResultType IdResult IdRef
120 ConvertUToPtr IdResultType IdResult IdRef
121 PtrCastToGeneric IdResultType IdResult IdRef
122 GenericCastToPtr IdResultType IdResult IdRef
123 GenericCastToPtrExplicit IdResultType IdResult IdRef StorageClass
124 Bitcast IdResultType IdResult IdRef
126 SNegate IdResultType IdResult IdRef
127 FNegate IdResultType IdResult IdRef
128 IAdd IdResultType IdResult IdRef IdRef
129 FAdd IdResultType IdResult IdRef IdRef
130 ISub IdResultType IdResult IdRef IdRef
131 FSub IdResultType IdResult IdRef IdRef
132 IMul IdResultType IdResult IdRef IdRef
133 FMul IdResultType IdResult IdRef IdRef
134 UDiv IdResultType IdResult IdRef IdRef
135 SDiv IdResultType IdResult IdRef IdRef
136 FDiv IdResultType IdResult IdRef IdRef
137 UMod IdResultType IdResult IdRef IdRef
138 SRem IdResultType IdResult IdRef IdRef
139 SMod IdResultType IdResult IdRef IdRef
140 FRem IdResultType IdResult IdRef IdRef
141 FMod IdResultType IdResult IdRef IdRef
142 VectorTimesScalar IdResultType IdResult IdRef IdRef
143 MatrixTimesScalar IdResultType IdResult IdRef IdRef
144 VectorTimesMatrix IdResultType IdResult IdRef IdRef
145 MatrixTimesVector IdResultType IdResult IdRef IdRef
146 MatrixTimesMatrix IdResultType IdResult IdRef IdRef
147 OuterProduct IdResultType IdResult IdRef IdRef
148 Dot IdResultType IdResult IdRef IdRef
149 IAddCarry IdResultType IdResult IdRef IdRef
150 ISubBorrow IdResultType IdResult IdRef IdRef
151 UMulExtended IdResultType IdResult IdRef IdRef
152 SMulExtended IdResultType IdResult IdRef IdRef
154 Any IdResultType IdResult IdRef
155 All IdResultType IdResult IdRef
156 IsNan IdResultType IdResult IdRef
157 IsInf IdResultType IdResult IdRef
158 IsFinite IdResultType IdResult IdRef
159 IsNormal IdResultType IdResult IdRef
160 SignBitSet IdResultType IdResult IdRef
161 LessOrGreater IdResultType IdResult IdRef IdRef
162 Ordered IdResultType IdResult IdRef IdRef
163 Unordered IdResultType IdResult IdRef IdRef
164 LogicalEqual IdResultType IdResult IdRef IdRef
165 LogicalNotEqual IdResultType IdResult IdRef IdRef
166 LogicalOr IdResultType IdResult IdRef IdRef
167 LogicalAnd IdResultType IdResult IdRef IdRef
168 LogicalNot IdResultType IdResult IdRef
169 Select IdResultType IdResult IdRef IdRef IdRef
170 IEqual IdResultType IdResult IdRef IdRef
171 INotEqual IdResultType IdResult IdRef IdRef
172 UGreaterThan IdResultType IdResult IdRef IdRef
173 SGreaterThan IdResultType IdResult IdRef IdRef
174 UGreaterThanEqual IdResultType IdResult IdRef IdRef
175 SGreaterThanEqual IdResultType IdResult IdRef IdRef
176 ULessThan IdResultType IdResult IdRef IdRef
177 SLessThan IdResultType IdResult IdRef IdRef
178 ULessThanEqual IdResultType IdResult IdRef IdRef
179 SLessThanEqual IdResultType IdResult IdRef IdRef
180 FOrdEqual IdResultType IdResult IdRef IdRef
181 FUnordEqual IdResultType IdResult IdRef IdRef
182 FOrdNotEqual IdResultType IdResult IdRef IdRef
183 FUnordNotEqual IdResultType IdResult IdRef IdRef
184 FOrdLessThan IdResultType IdResult IdRef IdRef
185 FUnordLessThan IdResultType IdResult IdRef IdRef
186 FOrdGreaterThan IdResultType IdResult IdRef IdRef
187 FUnordGreaterThan IdResultType IdResult IdRef IdRef
188 FOrdLessThanEqual IdResultType IdResult IdRef IdRef
189 FUnordLessThanEqual IdResultType IdResult IdRef IdRef
190 FOrdGreaterThanEqual IdResultType IdResult IdRef IdRef
191 FUnordGreaterThanEqual IdResultType IdResult IdRef IdRef
194 ShiftRightLogical IdResultType IdResult IdRef IdRef
195 ShiftRightArithmetic IdResultType IdResult IdRef IdRef
196 ShiftLeftLogical IdResultType IdResult IdRef IdRef
197 BitwiseOr IdResultType IdResult IdRef IdRef
198 BitwiseXor IdResultType IdResult IdRef IdRef
199 BitwiseAnd IdResultType IdResult IdRef IdRef
200 Not IdResultType IdResult IdRef
201 BitFieldInsert IdResultType IdResult IdRef IdRef IdRef IdRef
202 BitFieldSExtract IdResultType IdResult IdRef IdRef IdRef
203 BitFieldUExtract IdResultType IdResult IdRef IdRef IdRef
204 BitReverse IdResultType IdResult IdRef
205 BitCount IdResultType IdResult IdRef
207 DPdx IdResultType IdResult IdRef
208 DPdy IdResultType IdResult IdRef
209 Fwidth IdResultType IdResult IdRef
210 DPdxFine IdResultType IdResult IdRef
211 DPdyFine IdResultType IdResult IdRef
212 FwidthFine IdResultType IdResult IdRef
213 DPdxCoarse IdResultType IdResult IdRef
214 DPdyCoarse IdResultType IdResult IdRef
215 FwidthCoarse IdResultType IdResult IdRef
218 EmitVertex
219 EndPrimitive
220 EmitStreamVertex IdRef
221 EndStreamPrimitive IdRef
224 ControlBarrier IdScope IdScope IdMemorySemantics
225 MemoryBarrier IdScope IdMemorySemantics
227 AtomicLoad IdResultType IdResult IdRef IdScope IdMemorySemantics
228 AtomicStore IdRef IdScope IdMemorySemantics IdRef
229 AtomicExchange IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
230 AtomicCompareExchange IdResultType IdResult IdRef IdScope IdMemorySemantics IdMemorySemantics IdRef IdRef
231 AtomicCompareExchangeWeak IdResultType IdResult IdRef IdScope IdMemorySemantics IdMemorySemantics IdRef IdRef
232 AtomicIIncrement IdResultType IdResult IdRef IdScope IdMemorySemantics
233 AtomicIDecrement IdResultType IdResult IdRef IdScope IdMemorySemantics
234 AtomicIAdd IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
235 AtomicISub IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
236 AtomicSMin IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
237 AtomicUMin IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
238 AtomicSMax IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
239 AtomicUMax IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
240 AtomicAnd IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
241 AtomicOr IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
242 AtomicXor IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
245 Phi IdResultType IdResult PairIdRefIdRef*
246 LoopMerge IdRef IdRef LoopControl
247 SelectionMerge IdRef SelectionControl
248 Label IdResult
249 Branch IdRef
250 BranchConditional IdRef IdRef IdRef LiteralInteger*
251 Switch IdRef IdRef PairLiteralIntegerIdRef*
252 Kill
253 Return
254 ReturnValue IdRef
255 Unreachable
256 LifetimeStart IdRef LiteralInteger
257 LifetimeStop IdRef LiteralInteger
259 GroupAsyncCopy IdResultType IdResult IdScope IdRef IdRef IdRef IdRef IdRef
260 GroupWaitEvents IdScope IdRef IdRef
261 GroupAll IdResultType IdResult IdScope IdRef
262 GroupAny IdResultType IdResult IdScope IdRef
263 GroupBroadcast IdResultType IdResult IdScope IdRef IdRef
264 GroupIAdd IdResultType IdResult IdScope GroupOperation IdRef
265 GroupFAdd IdResultType IdResult IdScope GroupOperation IdRef
266 GroupFMin IdResultType IdResult IdScope GroupOperation IdRef
267 GroupUMin IdResultType IdResult IdScope GroupOperation IdRef
268 GroupSMin IdResultType IdResult IdScope GroupOperation IdRef
269 GroupFMax IdResultType IdResult IdScope GroupOperation IdRef
270 GroupUMax IdResultType IdResult IdScope GroupOperation IdRef
271 GroupSMax IdResultType IdResult IdScope GroupOperation IdRef
274 ReadPipe IdResultType IdResult IdRef IdRef IdRef IdRef
275 WritePipe IdResultType IdResult IdRef IdRef IdRef IdRef
276 ReservedReadPipe IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef
277 ReservedWritePipe IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef
278 ReserveReadPipePackets IdResultType IdResult IdRef IdRef IdRef IdRef
279 ReserveWritePipePackets IdResultType IdResult IdRef IdRef IdRef IdRef
280 CommitReadPipe IdRef IdRef IdRef IdRef
281 CommitWritePipe IdRef IdRef IdRef IdRef
282 IsValidReserveId IdResultType IdResult IdRef
283 GetNumPipePackets IdResultType IdResult IdRef IdRef IdRef
284 GetMaxPipePackets IdResultType IdResult IdRef IdRef IdRef
285 GroupReserveReadPipePackets IdResultType IdResult IdScope IdRef IdRef IdRef IdRef
286 GroupReserveWritePipePackets IdResultType IdResult IdScope IdRef IdRef IdRef IdRef
287 GroupCommitReadPipe IdScope IdRef IdRef IdRef IdRef
288 GroupCommitWritePipe IdScope IdRef IdRef IdRef IdRef
291 EnqueueMarker IdResultType IdResult IdRef IdRef IdRef IdRef
292 EnqueueKernel IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef*
293 GetKernelNDrangeSubGroupCount IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
294 GetKernelNDrangeMaxSubGroupSize IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
295 GetKernelWorkGroupSize IdResultType IdResult IdRef IdRef IdRef IdRef
296 GetKernelPreferredWorkGroupSizeMultiple IdResultType IdResult IdRef IdRef IdRef IdRef
297 RetainEvent IdRef
298 ReleaseEvent IdRef
299 CreateUserEvent IdResultType IdResult
300 IsValidEvent IdResultType IdResult IdRef
301 SetUserEventStatus IdRef IdRef
302 CaptureEventProfilingInfo IdRef IdRef IdRef
303 GetDefaultQueue IdResultType IdResult
304 BuildNDRange IdResultType IdResult IdRef IdRef IdRef
305 ImageSparseSampleImplicitLod IdResultType IdResult IdRef IdRef ImageOperands?
306 ImageSparseSampleExplicitLod IdResultType IdResult IdRef IdRef ImageOperands
307 ImageSparseSampleDrefImplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands?
308 ImageSparseSampleDrefExplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands
309 ImageSparseSampleProjImplicitLod IdResultType IdResult IdRef IdRef ImageOperands?
310 ImageSparseSampleProjExplicitLod IdResultType IdResult IdRef IdRef ImageOperands
311 ImageSparseSampleProjDrefImplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands?
312 ImageSparseSampleProjDrefExplicitLod IdResultType IdResult IdRef IdRef IdRef ImageOperands
313 ImageSparseFetch IdResultType IdResult IdRef IdRef ImageOperands?
314 ImageSparseGather IdResultType IdResult IdRef IdRef IdRef ImageOperands?
315 ImageSparseDrefGather IdResultType IdResult IdRef IdRef IdRef ImageOperands?
316 ImageSparseTexelsResident IdResultType IdResult IdRef
317 NoLine
318 AtomicFlagTestAndSet IdResultType IdResult IdRef IdScope IdMemorySemantics
319 AtomicFlagClear IdRef IdScope IdMemorySemantics
320 ImageSparseRead IdResultType IdResult IdRef IdRef ImageOperands?
321 SizeOf IdResultType IdResult IdRef
322 TypePipeStorage IdResult
323 ConstantPipeStorage IdResultType IdResult LiteralInteger LiteralInteger LiteralInteger
324 CreatePipeFromPipeStorage IdResultType IdResult IdRef
325 GetKernelLocalSizeForSubgroupCount IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
326 GetKernelMaxNumSubgroups IdResultType IdResult IdRef IdRef IdRef IdRef
327 TypeNamedBarrier IdResult
328 NamedBarrierInitialize IdResultType IdResult IdRef
329 MemoryNamedBarrier IdRef IdScope IdMemorySemantics
330 ModuleProcessed LiteralString
331 ExecutionModeId IdRef ExecutionMode
332 DecorateId IdRef Decoration
333 GroupNonUniformElect IdResultType IdResult IdScope
334 GroupNonUniformAll IdResultType IdResult IdScope IdRef
335 GroupNonUniformAny IdResultType IdResult IdScope IdRef
336 GroupNonUniformAllEqual IdResultType IdResult IdScope IdRef
337 GroupNonUniformBroadcast IdResultType IdResult IdScope IdRef IdRef
338 GroupNonUniformBroadcastFirst IdResultType IdResult IdScope IdRef
339 GroupNonUniformBallot IdResultType IdResult IdScope IdRef
340 GroupNonUniformInverseBallot IdResultType IdResult IdScope IdRef
341 GroupNonUniformBallotBitExtract IdResultType IdResult IdScope IdRef IdRef
342 GroupNonUniformBallotBitCount IdResultType IdResult IdScope GroupOperation IdRef
343 GroupNonUniformBallotFindLSB IdResultType IdResult IdScope IdRef
344 GroupNonUniformBallotFindMSB IdResultType IdResult IdScope IdRef
345 GroupNonUniformShuffle IdResultType IdResult IdScope IdRef IdRef
346 GroupNonUniformShuffleXor IdResultType IdResult IdScope IdRef IdRef
347 GroupNonUniformShuffleUp IdResultType IdResult IdScope IdRef IdRef
348 GroupNonUniformShuffleDown IdResultType IdResult IdScope IdRef IdRef
349 GroupNonUniformIAdd IdResultType IdResult IdScope GroupOperation IdRef IdRef?
350 GroupNonUniformFAdd IdResultType IdResult IdScope GroupOperation IdRef IdRef?
351 GroupNonUniformIMul IdResultType IdResult IdScope GroupOperation IdRef IdRef?
352 GroupNonUniformFMul IdResultType IdResult IdScope GroupOperation IdRef IdRef?
353 GroupNonUniformSMin IdResultType IdResult IdScope GroupOperation IdRef IdRef?
354 GroupNonUniformUMin IdResultType IdResult IdScope GroupOperation IdRef IdRef?
355 GroupNonUniformFMin IdResultType IdResult IdScope GroupOperation IdRef IdRef?
356 GroupNonUniformSMax IdResultType IdResult IdScope GroupOperation IdRef IdRef?
357 GroupNonUniformUMax IdResultType IdResult IdScope GroupOperation IdRef IdRef?
358 GroupNonUniformFMax IdResultType IdResult IdScope GroupOperation IdRef IdRef?
359 GroupNonUniformBitwiseAnd IdResultType IdResult IdScope GroupOperation IdRef IdRef?
360 GroupNonUniformBitwiseOr IdResultType IdResult IdScope GroupOperation IdRef IdRef?
361 GroupNonUniformBitwiseXor IdResultType IdResult IdScope GroupOperation IdRef IdRef?
362 GroupNonUniformLogicalAnd IdResultType IdResult IdScope GroupOperation IdRef IdRef?
363 GroupNonUniformLogicalOr IdResultType IdResult IdScope GroupOperation IdRef IdRef?
364 GroupNonUniformLogicalXor IdResultType IdResult IdScope GroupOperation IdRef IdRef?
365 GroupNonUniformQuadBroadcast IdResultType IdResult IdScope IdRef IdRef
366 GroupNonUniformQuadSwap IdResultType IdResult IdScope IdRef IdRef
400 CopyLogical IdResultType IdResult IdRef
401 PtrEqual IdResultType IdResult IdRef IdRef
402 PtrNotEqual IdResultType IdResult IdRef IdRef
403 PtrDiff IdResultType IdResult IdRef IdRef
4160 ColorAttachmentReadEXT IdResultType IdResult IdRef IdRef?
4161 DepthAttachmentReadEXT IdResultType IdResult IdRef?
4162 StencilAttachmentReadEXT IdResultType IdResult IdRef?
4163 TypeTensorARM IdResult IdRef IdRef? IdRef?
4164 TensorReadARM IdResultType IdResult IdRef IdRef TensorOperands?
4165 TensorWriteARM IdRef IdRef IdRef TensorOperands?
4166 TensorQuerySizeARM IdResultType IdResult IdRef IdRef
4181 GraphConstantARM IdResultType IdResult LiteralInteger
4182 GraphEntryPointARM IdRef LiteralString IdRef*
4183 GraphARM IdResultType IdResult
4184 GraphInputARM IdResultType IdResult IdRef IdRef*
4185 GraphSetOutputARM IdRef IdRef IdRef*
4186 GraphEndARM
4190 TypeGraphARM IdResult LiteralInteger IdRef*
4195 BitcastExtractEXT IdResultType IdResult IdRef IdRef
4416 TerminateInvocation
4417 TypeUntypedPointerKHR IdResult StorageClass
4418 UntypedVariableKHR IdResultType IdResult StorageClass IdRef? IdRef?
4419 UntypedAccessChainKHR IdResultType IdResult IdRef IdRef IdRef*
4420 UntypedInBoundsAccessChainKHR IdResultType IdResult IdRef IdRef IdRef*
4421 SubgroupBallotKHR IdResultType IdResult IdRef
4422 SubgroupFirstInvocationKHR IdResultType IdResult IdRef
4423 UntypedPtrAccessChainKHR IdResultType IdResult IdRef IdRef IdRef IdRef*
4424 UntypedInBoundsPtrAccessChainKHR IdResultType IdResult IdRef IdRef IdRef IdRef*
4425 UntypedArrayLengthKHR IdResultType IdResult IdRef IdRef LiteralInteger
4426 UntypedPrefetchKHR IdRef IdRef IdRef? IdRef? IdRef?
4427 FmaKHR IdResultType IdResult IdRef IdRef IdRef
4428 SubgroupAllKHR IdResultType IdResult IdRef
4429 SubgroupAnyKHR IdResultType IdResult IdRef
4430 SubgroupAllEqualKHR IdResultType IdResult IdRef
4431 GroupNonUniformRotateKHR IdResultType IdResult IdScope IdRef IdRef IdRef?
4432 SubgroupReadInvocationKHR IdResultType IdResult IdRef IdRef
4433 ExtInstWithForwardRefsKHR IdResultType IdResult IdRef LiteralExtInstInteger IdRef*
4434 UntypedGroupAsyncCopyKHR IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef IdRef MemoryAccess? MemoryAccess?
4445 TraceRayKHR IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
4446 ExecuteCallableKHR IdRef IdRef
4447 ConvertUToAccelerationStructureKHR IdResultType IdResult IdRef
4448 IgnoreIntersectionKHR
4449 TerminateRayKHR
4450 SDot IdResultType IdResult IdRef IdRef PackedVectorFormat?
4451 UDot IdResultType IdResult IdRef IdRef PackedVectorFormat?
4452 SUDot IdResultType IdResult IdRef IdRef PackedVectorFormat?
4453 SDotAccSat IdResultType IdResult IdRef IdRef IdRef PackedVectorFormat?
4454 UDotAccSat IdResultType IdResult IdRef IdRef IdRef PackedVectorFormat?
4455 SUDotAccSat IdResultType IdResult IdRef IdRef IdRef PackedVectorFormat?
4456 TypeCooperativeMatrixKHR IdResult IdRef IdScope IdRef IdRef IdRef
4457 CooperativeMatrixLoadKHR IdResultType IdResult IdRef IdRef IdRef? MemoryAccess?
4458 CooperativeMatrixStoreKHR IdRef IdRef IdRef IdRef? MemoryAccess?
4459 CooperativeMatrixMulAddKHR IdResultType IdResult IdRef IdRef IdRef CooperativeMatrixOperands?
4460 CooperativeMatrixLengthKHR IdResultType IdResult IdRef
4461 ConstantCompositeReplicateEXT IdResultType IdResult IdRef
4462 SpecConstantCompositeReplicateEXT IdResultType IdResult IdRef
4463 CompositeConstructReplicateEXT IdResultType IdResult IdRef
4472 TypeRayQueryKHR IdResult
4473 RayQueryInitializeKHR IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
4474 RayQueryTerminateKHR IdRef
4475 RayQueryGenerateIntersectionKHR IdRef IdRef
4476 RayQueryConfirmIntersectionKHR IdRef
4477 RayQueryProceedKHR IdResultType IdResult IdRef
4479 RayQueryGetIntersectionTypeKHR IdResultType IdResult IdRef IdRef
4480 ImageSampleWeightedQCOM IdResultType IdResult IdRef IdRef IdRef
4481 ImageBoxFilterQCOM IdResultType IdResult IdRef IdRef IdRef
4482 ImageBlockMatchSSDQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4483 ImageBlockMatchSADQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4497 BitCastArrayQCOM IdResultType IdResult IdRef
4500 ImageBlockMatchWindowSSDQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4501 ImageBlockMatchWindowSADQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4502 ImageBlockMatchGatherSSDQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4503 ImageBlockMatchGatherSADQCOM IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
4505 BFloat16MulAddQCOM IdResultType IdResult IdRef IdRef IdRef
4540 CompositeConstructCoopMatQCOM IdResultType IdResult IdRef
4541 CompositeExtractCoopMatQCOM IdResultType IdResult IdRef
4542 ExtractSubArrayQCOM IdResultType IdResult IdRef IdRef
4545 ImageGatherQCOM IdResultType IdResult IdRef IdRef IdRef IdRef ImageOperands?
5000 GroupIAddNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5001 GroupFAddNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5002 GroupFMinNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5003 GroupUMinNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5004 GroupSMinNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5005 GroupFMaxNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5006 GroupUMaxNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5007 GroupSMaxNonUniformAMD IdResultType IdResult IdScope GroupOperation IdRef
5011 FragmentMaskFetchAMD IdResultType IdResult IdRef IdRef
5012 FragmentFetchAMD IdResultType IdResult IdRef IdRef IdRef
5056 ReadClockKHR IdResultType IdResult IdScope
5074 AllocateNodePayloadsAMDX IdResultType IdResult IdScope IdRef IdRef
5075 EnqueueNodePayloadsAMDX IdRef
5076 TypeNodePayloadArrayAMDX IdResult IdRef
5078 FinishWritingNodePayloadAMDX IdResultType IdResult IdRef
5090 NodePayloadArrayLengthAMDX IdResultType IdResult IdRef
5101 IsNodePayloadValidAMDX IdResultType IdResult IdRef IdRef
5103 ConstantStringAMDX IdResult LiteralString
5104 SpecConstantStringAMDX IdResult LiteralString
5110 GroupNonUniformQuadAllKHR IdResultType IdResult IdRef
5111 GroupNonUniformQuadAnyKHR IdResultType IdResult IdRef
5115 TypeBufferEXT IdResult StorageClass
5119 BufferPointerEXT IdResultType IdResult IdRef
5121 AbortKHR IdRef IdRef
5126 UntypedImageTexelPointerEXT IdResultType IdResult IdRef IdRef IdRef IdRef
5127 MemberDecorateIdEXT IdRef LiteralInteger Decoration
5129 ConstantSizeOfEXT IdResultType IdResult IdRef
5147 ConstantDataKHR IdResultType IdResult LiteralInteger*
5148 SpecConstantDataKHR IdResultType IdResult LiteralInteger*
5158 PoisonKHR IdResultType IdResult
5159 FreezeKHR IdResultType IdResult IdRef
5249 HitObjectRecordHitMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5250 HitObjectRecordHitWithIndexMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5251 HitObjectRecordMissMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5252 HitObjectGetWorldToObjectNV IdResultType IdResult IdRef
5253 HitObjectGetObjectToWorldNV IdResultType IdResult IdRef
5254 HitObjectGetObjectRayDirectionNV IdResultType IdResult IdRef
5255 HitObjectGetObjectRayOriginNV IdResultType IdResult IdRef
5256 HitObjectTraceRayMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5257 HitObjectGetShaderRecordBufferHandleNV IdResultType IdResult IdRef
5258 HitObjectGetShaderBindingTableRecordIndexNV IdResultType IdResult IdRef
5259 HitObjectRecordEmptyNV IdRef
5260 HitObjectTraceRayNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5261 HitObjectRecordHitNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5262 HitObjectRecordHitWithIndexNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5263 HitObjectRecordMissNV IdRef IdRef IdRef IdRef IdRef IdRef
5264 HitObjectExecuteShaderNV IdRef IdRef
5265 HitObjectGetCurrentTimeNV IdResultType IdResult IdRef
5266 HitObjectGetAttributesNV IdRef IdRef
5267 HitObjectGetHitKindNV IdResultType IdResult IdRef
5268 HitObjectGetPrimitiveIndexNV IdResultType IdResult IdRef
5269 HitObjectGetGeometryIndexNV IdResultType IdResult IdRef
5270 HitObjectGetInstanceIdNV IdResultType IdResult IdRef
5271 HitObjectGetInstanceCustomIndexNV IdResultType IdResult IdRef
5272 HitObjectGetWorldRayDirectionNV IdResultType IdResult IdRef
5273 HitObjectGetWorldRayOriginNV IdResultType IdResult IdRef
5274 HitObjectGetRayTMaxNV IdResultType IdResult IdRef
5275 HitObjectGetRayTMinNV IdResultType IdResult IdRef
5276 HitObjectIsEmptyNV IdResultType IdResult IdRef
5277 HitObjectIsHitNV IdResultType IdResult IdRef
5278 HitObjectIsMissNV IdResultType IdResult IdRef
5279 ReorderThreadWithHitObjectNV IdRef IdRef? IdRef?
5280 ReorderThreadWithHintNV IdRef IdRef
5281 TypeHitObjectNV IdResult
5283 ImageSampleFootprintNV IdResultType IdResult IdRef IdRef IdRef IdRef ImageOperands?
5288 TypeVectorIdEXT IdResult IdRef IdRef
5289 CooperativeVectorMatrixMulNV IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef? CooperativeMatrixOperands?
5290 CooperativeVectorOuterProductAccumulateNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef?
5291 CooperativeVectorReduceSumAccumulateNV IdRef IdRef IdRef
5292 CooperativeVectorMatrixMulAddNV IdResultType IdResult IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef? CooperativeMatrixOperands?
5293 CooperativeMatrixConvertUseEXT IdResultType IdResult IdRef
5294 EmitMeshTasksEXT IdRef IdRef IdRef IdRef?
5295 SetMeshOutputsEXT IdRef IdRef
5296 GroupNonUniformPartitionEXT IdResultType IdResult IdRef
5299 WritePackedPrimitiveIndices4x8NV IdRef IdRef
5300 FetchMicroTriangleVertexPositionNV IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
5301 FetchMicroTriangleVertexBarycentricNV IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
5302 CooperativeVectorLoadNV IdResultType IdResult IdRef IdRef MemoryAccess?
5303 CooperativeVectorStoreNV IdRef IdRef IdRef MemoryAccess?
5304 HitObjectRecordFromQueryEXT IdRef IdRef IdRef IdRef IdRef?
5305 HitObjectRecordMissEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5306 HitObjectRecordMissMotionEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5307 HitObjectGetIntersectionTriangleVertexPositionsEXT IdResultType IdResult IdRef
5308 HitObjectGetRayFlagsEXT IdResultType IdResult IdRef
5309 HitObjectSetShaderBindingTableRecordIndexEXT IdRef IdRef
5310 HitObjectReorderExecuteShaderEXT IdRef IdRef IdRef? IdRef?
5311 HitObjectTraceReorderExecuteEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef? IdRef?
5312 HitObjectTraceMotionReorderExecuteEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef? IdRef?
5313 TypeHitObjectEXT IdResult
5314 ReorderThreadWithHintEXT IdRef IdRef
5315 ReorderThreadWithHitObjectEXT IdRef IdRef? IdRef?
5316 HitObjectTraceRayEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5317 HitObjectTraceRayMotionEXT IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5318 HitObjectRecordEmptyEXT IdRef
5319 HitObjectExecuteShaderEXT IdRef IdRef
5320 HitObjectGetCurrentTimeEXT IdResultType IdResult IdRef
5321 HitObjectGetAttributesEXT IdRef IdRef
5322 HitObjectGetHitKindEXT IdResultType IdResult IdRef
5323 HitObjectGetPrimitiveIndexEXT IdResultType IdResult IdRef
5324 HitObjectGetGeometryIndexEXT IdResultType IdResult IdRef
5325 HitObjectGetInstanceIdEXT IdResultType IdResult IdRef
5326 HitObjectGetInstanceCustomIndexEXT IdResultType IdResult IdRef
5327 HitObjectGetObjectRayOriginEXT IdResultType IdResult IdRef
5328 HitObjectGetObjectRayDirectionEXT IdResultType IdResult IdRef
5329 HitObjectGetWorldRayDirectionEXT IdResultType IdResult IdRef
5330 HitObjectGetWorldRayOriginEXT IdResultType IdResult IdRef
5331 HitObjectGetObjectToWorldEXT IdResultType IdResult IdRef
5332 HitObjectGetWorldToObjectEXT IdResultType IdResult IdRef
5333 HitObjectGetRayTMaxEXT IdResultType IdResult IdRef
5334 ReportIntersectionKHR IdResultType IdResult IdRef IdRef
5335 IgnoreIntersectionNV
5336 TerminateRayNV
5337 TraceNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5338 TraceMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5339 TraceRayMotionNV IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef IdRef
5340 RayQueryGetIntersectionTriangleVertexPositionsKHR IdResultType IdResult IdRef IdRef
5341 TypeAccelerationStructureKHR IdResult
5344 ExecuteCallableNV IdRef IdRef
5345 RayQueryGetIntersectionClusterIdNV IdResultType IdResult IdRef IdRef
5346 HitObjectGetClusterIdNV IdResultType IdResult IdRef
5347 HitObjectGetRayTMinEXT IdResultType IdResult IdRef
5348 HitObjectGetShaderBindingTableRecordIndexEXT IdResultType IdResult IdRef
5349 HitObjectGetShaderRecordBufferHandleEXT IdResultType IdResult IdRef
5350 HitObjectIsEmptyEXT IdResultType IdResult IdRef
5351 HitObjectIsHitEXT IdResultType IdResult IdRef
5352 HitObjectIsMissEXT IdResultType IdResult IdRef
5358 TypeCooperativeMatrixNV IdResult IdRef IdScope IdRef IdRef
5359 CooperativeMatrixLoadNV IdResultType IdResult IdRef IdRef IdRef MemoryAccess?
5360 CooperativeMatrixStoreNV IdRef IdRef IdRef IdRef MemoryAccess?
5361 CooperativeMatrixMulAddNV IdResultType IdResult IdRef IdRef IdRef
5362 CooperativeMatrixLengthNV IdResultType IdResult IdRef
5363 CooperativeMatrixGetCoordinateEXT IdResultType IdResult IdRef IdRef
5364 BeginInvocationInterlockEXT
5365 EndInvocationInterlockEXT
5366 CooperativeMatrixReduceEXT IdResultType IdResult IdRef CooperativeMatrixReduce IdRef
5367 CooperativeMatrixLoadTensorNV IdResultType IdResult IdRef IdRef IdRef MemoryAccess TensorAddressingOperands
5368 CooperativeMatrixStoreTensorNV IdRef IdRef IdRef MemoryAccess TensorAddressingOperands
5369 CooperativeMatrixPerElementOpEXT IdResultType IdResult IdRef IdRef IdRef*
5370 TypeTensorLayoutNV IdResult IdRef IdRef
5371 TypeTensorViewNV IdResult IdRef IdRef IdRef*
5372 CreateTensorLayoutNV IdResultType IdResult
5373 TensorLayoutSetDimensionNV IdResultType IdResult IdRef IdRef*
5374 TensorLayoutSetStrideNV IdResultType IdResult IdRef IdRef*
5375 TensorLayoutSliceNV IdResultType IdResult IdRef IdRef*
5376 TensorLayoutSetClampValueNV IdResultType IdResult IdRef IdRef
5377 CreateTensorViewNV IdResultType IdResult
5378 TensorViewSetDimensionNV IdResultType IdResult IdRef IdRef*
5379 TensorViewSetStrideNV IdResultType IdResult IdRef IdRef*
5380 DemoteToHelperInvocation
5381 IsHelperInvocationEXT IdResultType IdResult
5382 TensorViewSetClipNV IdResultType IdResult IdRef IdRef IdRef IdRef IdRef
5384 TensorLayoutSetBlockSizeNV IdResultType IdResult IdRef IdRef*
5390 CooperativeMatrixTransposeNV IdResultType IdResult IdRef
5391 ConvertUToImageNV IdResultType IdResult IdRef
5392 ConvertUToSamplerNV IdResultType IdResult IdRef
5393 ConvertImageToUNV IdResultType IdResult IdRef
5394 ConvertSamplerToUNV IdResultType IdResult IdRef
5395 ConvertUToSampledImageNV IdResultType IdResult IdRef
5396 ConvertSampledImageToUNV IdResultType IdResult IdRef
5397 SamplerImageAddressingModeNV LiteralInteger
5398 RawAccessChainNV IdResultType IdResult IdRef IdRef IdRef IdRef RawAccessChainOperands?
5427 RayQueryGetIntersectionSpherePositionNV IdResultType IdResult IdRef IdRef
5428 RayQueryGetIntersectionSphereRadiusNV IdResultType IdResult IdRef IdRef
5429 RayQueryGetIntersectionLSSPositionsNV IdResultType IdResult IdRef IdRef
5430 RayQueryGetIntersectionLSSRadiiNV IdResultType IdResult IdRef IdRef
5431 RayQueryGetIntersectionLSSHitValueNV IdResultType IdResult IdRef IdRef
5432 HitObjectGetSpherePositionNV IdResultType IdResult IdRef
5433 HitObjectGetSphereRadiusNV IdResultType IdResult IdRef
5434 HitObjectGetLSSPositionsNV IdResultType IdResult IdRef
5435 HitObjectGetLSSRadiiNV IdResultType IdResult IdRef
5436 HitObjectIsSphereHitNV IdResultType IdResult IdRef
5437 HitObjectIsLSSHitNV IdResultType IdResult IdRef
5438 RayQueryIsSphereHitNV IdResultType IdResult IdRef IdRef
5439 RayQueryIsLSSHitNV IdResultType IdResult IdRef IdRef
5614 AtomicFMinEXT IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
5615 AtomicFMaxEXT IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
5630 AssumeTrueKHR IdRef
5631 ExpectKHR IdResultType IdResult IdRef IdRef
5632 DecorateString IdRef Decoration
5633 MemberDecorateString IdRef LiteralInteger Decoration
6016 RayQueryGetRayTMinKHR IdResultType IdResult IdRef
6017 RayQueryGetRayFlagsKHR IdResultType IdResult IdRef
6018 RayQueryGetIntersectionTKHR IdResultType IdResult IdRef IdRef
6019 RayQueryGetIntersectionInstanceCustomIndexKHR IdResultType IdResult IdRef IdRef
6020 RayQueryGetIntersectionInstanceIdKHR IdResultType IdResult IdRef IdRef
6021 RayQueryGetIntersectionInstanceShaderBindingTableRecordOffsetKHR IdResultType IdResult IdRef IdRef
6022 RayQueryGetIntersectionGeometryIndexKHR IdResultType IdResult IdRef IdRef
6023 RayQueryGetIntersectionPrimitiveIndexKHR IdResultType IdResult IdRef IdRef
6024 RayQueryGetIntersectionBarycentricsKHR IdResultType IdResult IdRef IdRef
6025 RayQueryGetIntersectionFrontFaceKHR IdResultType IdResult IdRef IdRef
6026 RayQueryGetIntersectionCandidateAABBOpaqueKHR IdResultType IdResult IdRef
6027 RayQueryGetIntersectionObjectRayDirectionKHR IdResultType IdResult IdRef IdRef
6028 RayQueryGetIntersectionObjectRayOriginKHR IdResultType IdResult IdRef IdRef
6029 RayQueryGetWorldRayDirectionKHR IdResultType IdResult IdRef
6030 RayQueryGetWorldRayOriginKHR IdResultType IdResult IdRef
6031 RayQueryGetIntersectionObjectToWorldKHR IdResultType IdResult IdRef IdRef
6032 RayQueryGetIntersectionWorldToObjectKHR IdResultType IdResult IdRef IdRef
6035 AtomicFAddEXT IdResultType IdResult IdRef IdScope IdMemorySemantics IdRef
6142 ControlBarrierArriveEXT IdScope IdScope IdMemorySemantics
6143 ControlBarrierWaitEXT IdScope IdScope IdMemorySemantics
6145 ArithmeticFenceEXT IdResultType IdResult IdRef
6401 GroupIMulKHR IdResultType IdResult IdScope GroupOperation IdRef
6402 GroupFMulKHR IdResultType IdResult IdScope GroupOperation IdRef
6403 GroupBitwiseAndKHR IdResultType IdResult IdScope GroupOperation IdRef
6404 GroupBitwiseOrKHR IdResultType IdResult IdScope GroupOperation IdRef
6405 GroupBitwiseXorKHR IdResultType IdResult IdScope GroupOperation IdRef
6406 GroupLogicalAndKHR IdResultType IdResult IdScope GroupOperation IdRef
6407 GroupLogicalOrKHR IdResultType IdResult IdScope GroupOperation IdRef
6408 GroupLogicalXorKHR IdResultType IdResult IdScope GroupOperation IdRef
6916 FDot2MixAcc32VALVE IdResultType IdResult IdRef IdRef IdRef
6917 FDot2MixAcc16VALVE IdResultType IdResult IdRef IdRef IdRef
6918 FDot4MixAcc32VALVE IdResultType IdResult IdRef IdRef IdRef
"""

KINDS = """\
mask ImageOperands
0 None
1 Bias IdRef
2 Lod IdRef
4 Grad IdRef IdRef
8 ConstOffset IdRef
16 Offset IdRef
32 ConstOffsets IdRef
64 Sample IdRef
128 MinLod IdRef
256 MakeTexelAvailable IdScope
512 MakeTexelVisible IdScope
1024 NonPrivateTexel
2048 VolatileTexel
4096 SignExtend
8192 ZeroExtend
16384 Nontemporal
65536 Offsets IdRef
mask FPFastMathMode
0 None
1 NotNaN
2 NotInf
4 NSZ
8 AllowRecip
16 Fast
65536 AllowContract
131072 AllowReassoc
262144 AllowTransform
mask SelectionControl
0 None
1 Flatten
2 DontFlatten
mask LoopControl
0 None
1 Unroll
2 DontUnroll
4 DependencyInfinite
8 DependencyLength LiteralInteger
16 MinIterations LiteralInteger
32 MaxIterations LiteralInteger
64 IterationMultiple LiteralInteger
128 PeelCount LiteralInteger
256 PartialCount LiteralInteger
65536 InitiationIntervalALTERA LiteralInteger
131072 MaxConcurrencyALTERA LiteralInteger
262144 DependencyArrayALTERA LiteralInteger
524288 PipelineEnableALTERA LiteralInteger
1048576 LoopCoalesceALTERA LiteralInteger
2097152 MaxInterleavingALTERA LiteralInteger
4194304 SpeculatedIterationsALTERA LiteralInteger
8388608 NoFusionALTERA
16777216 LoopCountALTERA LiteralInteger
33554432 MaxReinvocationDelayALTERA LiteralInteger
268435456 MultipleWaitQueuesQCOM LiteralInteger
mask FunctionControl
0 None
1 Inline
2 DontInline
4 Pure
8 Const
65536 OptNoneEXT
mask MemorySemantics
0 Relaxed
2 Acquire
4 Release
8 AcquireRelease
16 SequentiallyConsistent
64 UniformMemory
128 SubgroupMemory
256 WorkgroupMemory
512 CrossWorkgroupMemory
1024 AtomicCounterMemory
2048 ImageMemory
4096 OutputMemory
8192 MakeAvailable
16384 MakeVisible
32768 Volatile
mask MemoryAccess
0 None
1 Volatile
2 Aligned LiteralInteger
4 Nontemporal
8 MakePointerAvailable IdScope
16 MakePointerVisible IdScope
32 NonPrivatePointer
65536 AliasScopeINTELMask IdRef
131072 NoAliasINTELMask IdRef
mask KernelProfilingInfo
0 None
1 CmdExecTime
mask RayFlags
0 NoneKHR
1 OpaqueKHR
2 NoOpaqueKHR
4 TerminateOnFirstHitKHR
8 SkipClosestHitShaderKHR
16 CullBackFacingTrianglesKHR
32 CullFrontFacingTrianglesKHR
64 CullOpaqueKHR
128 CullNoOpaqueKHR
256 SkipTrianglesKHR
512 SkipAABBsKHR
1024 ForceOpacityMicromap2StateKHR
mask FragmentShadingRate
1 Vertical2Pixels
2 Vertical4Pixels
4 Horizontal2Pixels
8 Horizontal4Pixels
mask RawAccessChainOperands
0 None
1 RobustnessPerComponentNV
2 RobustnessPerElementNV
value SourceLanguage
0 Unknown
1 ESSL
2 GLSL
3 OpenCL_C
4 OpenCL_CPP
5 HLSL
6 CPP_for_OpenCL
7 SYCL
8 HERO_C
9 NZSL
10 WGSL
11 Slang
12 Zig
13 Rust
14 Pred
15 ApilaJai
value ExecutionModel
0 Vertex
1 TessellationControl
2 TessellationEvaluation
3 Geometry
4 Fragment
5 GLCompute
6 Kernel
5267 TaskNV
5268 MeshNV
5313 RayGenerationKHR
5314 IntersectionKHR
5315 AnyHitKHR
5316 ClosestHitKHR
5317 MissKHR
5318 CallableKHR
5364 TaskEXT
5365 MeshEXT
value AddressingModel
0 Logical
1 Physical32
2 Physical64
5348 PhysicalStorageBuffer64
value MemoryModel
0 Simple
1 GLSL450
2 OpenCL
3 Vulkan
value ExecutionMode
0 Invocations LiteralInteger
1 SpacingEqual
2 SpacingFractionalEven
3 SpacingFractionalOdd
4 VertexOrderCw
5 VertexOrderCcw
6 PixelCenterInteger
7 OriginUpperLeft
8 OriginLowerLeft
9 EarlyFragmentTests
10 PointMode
11 Xfb
12 DepthReplacing
14 DepthGreater
15 DepthLess
16 DepthUnchanged
17 LocalSize LiteralInteger LiteralInteger LiteralInteger
18 LocalSizeHint LiteralInteger LiteralInteger LiteralInteger
19 InputPoints
20 InputLines
21 InputLinesAdjacency
22 Triangles
23 InputTrianglesAdjacency
24 Quads
25 Isolines
26 OutputVertices LiteralInteger
27 OutputPoints
28 OutputLineStrip
29 OutputTriangleStrip
30 VecTypeHint LiteralInteger
31 ContractionOff
33 Initializer
34 Finalizer
35 SubgroupSize LiteralInteger
36 SubgroupsPerWorkgroup LiteralInteger
37 SubgroupsPerWorkgroupId IdRef
38 LocalSizeId IdRef IdRef IdRef
39 LocalSizeHintId IdRef IdRef IdRef
4169 NonCoherentColorAttachmentReadEXT
4170 NonCoherentDepthAttachmentReadEXT
4171 NonCoherentStencilAttachmentReadEXT
4421 SubgroupUniformControlFlowKHR
4446 PostDepthCoverage
4459 DenormPreserve LiteralInteger
4460 DenormFlushToZero LiteralInteger
4461 SignedZeroInfNanPreserve LiteralInteger
4462 RoundingModeRTE LiteralInteger
4463 RoundingModeRTZ LiteralInteger
4489 NonCoherentTileAttachmentReadQCOM
4490 TileShadingRateQCOM LiteralInteger LiteralInteger LiteralInteger
4507 SubgroupSizeHalfQCOM
4508 SubgroupSizeFullQCOM
5017 EarlyAndLateFragmentTestsAMD
5027 StencilRefReplacingEXT
5069 CoalescingAMDX
5070 IsApiEntryAMDX IdRef
5071 MaxNodeRecursionAMDX IdRef
5072 StaticNumWorkgroupsAMDX IdRef IdRef IdRef
5073 ShaderIndexAMDX IdRef
5077 MaxNumWorkgroupsAMDX IdRef IdRef IdRef
5079 StencilRefUnchangedFrontAMD
5080 StencilRefGreaterFrontAMD
5081 StencilRefLessFrontAMD
5082 StencilRefUnchangedBackAMD
5083 StencilRefGreaterBackAMD
5084 StencilRefLessBackAMD
5088 QuadDerivativesKHR
5089 RequireFullQuadsKHR
5102 SharesInputWithAMDX IdRef IdRef
5157 ArithmeticPoisonKHR
5269 OutputLinesEXT
5270 OutputPrimitivesEXT LiteralInteger
5289 DerivativeGroupQuadsKHR
5290 DerivativeGroupLinearKHR
5298 OutputTrianglesEXT
5366 PixelInterlockOrderedEXT
5367 PixelInterlockUnorderedEXT
5368 SampleInterlockOrderedEXT
5369 SampleInterlockUnorderedEXT
5370 ShadingRateInterlockOrderedEXT
5371 ShadingRateInterlockUnorderedEXT
5427 Shader64BitIndexingEXT
5618 SharedLocalMemorySizeINTEL LiteralInteger
5620 RoundingModeRTPINTEL LiteralInteger
5621 RoundingModeRTNINTEL LiteralInteger
5622 FloatingPointModeALTINTEL LiteralInteger
5623 FloatingPointModeIEEEINTEL LiteralInteger
5893 MaxWorkgroupSizeINTEL LiteralInteger LiteralInteger LiteralInteger
5894 MaxWorkDimINTEL LiteralInteger
5895 NoGlobalOffsetINTEL
5896 NumSIMDWorkitemsINTEL LiteralInteger
5903 SchedulerTargetFmaxMhzINTEL LiteralInteger
6023 MaximallyReconvergesKHR
6028 FPFastMathDefault IdRef IdRef
6031 OpacityMicromapIdKHR IdRef
6154 StreamingInterfaceINTEL LiteralInteger
6160 RegisterMapInterfaceINTEL LiteralInteger
6417 NamedBarrierCountINTEL LiteralInteger
6461 MaximumRegistersINTEL LiteralInteger
6462 MaximumRegistersIdINTEL IdRef
6463 NamedMaximumRegistersINTEL NamedMaximumNumberOfRegisters
value StorageClass
0 UniformConstant
1 Input
2 Uniform
3 Output
4 Workgroup
5 CrossWorkgroup
6 Private
7 Function
8 Generic
9 PushConstant
10 AtomicCounter
11 Image
12 StorageBuffer
4172 TileImageEXT
4491 TileAttachmentQCOM
5068 NodePayloadAMDX
5328 CallableDataKHR
5329 IncomingCallableDataKHR
5338 RayPayloadKHR
5339 HitAttributeKHR
5342 IncomingRayPayloadKHR
5343 ShaderRecordBufferKHR
5349 PhysicalStorageBuffer
5385 HitObjectAttributeNV
5402 TaskPayloadWorkgroupEXT
5411 HitObjectAttributeEXT
5605 CodeSectionINTEL
5936 DeviceOnlyALTERA
5937 HostOnlyALTERA
value Dim
0 1D
1 2D
2 3D
3 Cube
4 Rect
5 Buffer
6 SubpassData
4173 TileImageDataEXT
value SamplerAddressingMode
0 None
1 ClampToEdge
2 Clamp
3 Repeat
4 RepeatMirrored
value SamplerFilterMode
0 Nearest
1 Linear
value ImageFormat
0 Unknown
1 Rgba32f
2 Rgba16f
3 R32f
4 Rgba8
5 Rgba8Snorm
6 Rg32f
7 Rg16f
8 R11fG11fB10f
9 R16f
10 Rgba16
11 Rgb10A2
12 Rg16
13 Rg8
14 R16
15 R8
16 Rgba16Snorm
17 Rg16Snorm
18 Rg8Snorm
19 R16Snorm
20 R8Snorm
21 Rgba32i
22 Rgba16i
23 Rgba8i
24 R32i
25 Rg32i
26 Rg16i
27 Rg8i
28 R16i
29 R8i
30 Rgba32ui
31 Rgba16ui
32 Rgba8ui
33 R32ui
34 Rgb10a2ui
35 Rg32ui
36 Rg16ui
37 Rg8ui
38 R16ui
39 R8ui
40 R64ui
41 R64i
value ImageChannelOrder
0 R
1 A
2 RG
3 RA
4 RGB
5 RGBA
6 BGRA
7 ARGB
8 Intensity
9 Luminance
10 Rx
11 RGx
12 RGBx
13 Depth
14 DepthStencil
15 sRGB
16 sRGBx
17 sRGBA
18 sBGRA
19 ABGR
value ImageChannelDataType
0 SnormInt8
1 SnormInt16
2 UnormInt8
3 UnormInt16
4 UnormShort565
5 UnormShort555
6 UnormInt101010
7 SignedInt8
8 SignedInt16
9 SignedInt32
10 UnsignedInt8
11 UnsignedInt16
12 UnsignedInt32
13 HalfFloat
14 Float
15 UnormInt24
16 UnormInt101010_2
17 UnormInt10X6EXT
19 UnsignedIntRaw10EXT
20 UnsignedIntRaw12EXT
21 UnormInt2_101010EXT
22 UnsignedInt10X6EXT
23 UnsignedInt12X4EXT
24 UnsignedInt14X2EXT
25 UnormInt12X4EXT
26 UnormInt14X2EXT
value FPRoundingMode
0 RTE
1 RTZ
2 RTP
3 RTN
value FPDenormMode
0 Preserve
1 FlushToZero
value QuantizationModes
0 TRN
1 TRN_ZERO
2 RND
3 RND_ZERO
4 RND_INF
5 RND_MIN_INF
6 RND_CONV
7 RND_CONV_ODD
value FPOperationMode
0 IEEE
1 ALT
value OverflowModes
0 WRAP
1 SAT
2 SAT_ZERO
3 SAT_SYM
value LinkageType
0 Export
1 Import
2 LinkOnceODR
3 WeakAMD
value AccessQualifier
0 ReadOnly
1 WriteOnly
2 ReadWrite
value HostAccessQualifier
0 NoneINTEL
1 ReadINTEL
2 WriteINTEL
3 ReadWriteINTEL
value FunctionParameterAttribute
0 Zext
1 Sext
2 ByVal
3 Sret
4 NoAlias
5 NoCapture
6 NoWrite
7 NoReadWrite
5940 RuntimeAlignedALTERA
value Decoration
0 RelaxedPrecision
1 SpecId LiteralInteger
2 Block
3 BufferBlock
4 RowMajor
5 ColMajor
6 ArrayStride LiteralInteger
7 MatrixStride LiteralInteger
8 GLSLShared
9 GLSLPacked
10 CPacked
11 BuiltIn BuiltIn
13 NoPerspective
14 Flat
15 Patch
16 Centroid
17 Sample
18 Invariant
19 Restrict
20 Aliased
21 Volatile
22 Constant
23 Coherent
24 NonWritable
25 NonReadable
26 Uniform
27 UniformId IdScope
28 SaturatedConversion
29 Stream LiteralInteger
30 Location LiteralInteger
31 Component LiteralInteger
32 Index LiteralInteger
33 Binding LiteralInteger
34 DescriptorSet LiteralInteger
35 Offset LiteralInteger
36 XfbBuffer LiteralInteger
37 XfbStride LiteralInteger
38 FuncParamAttr FunctionParameterAttribute
39 FPRoundingMode FPRoundingMode
40 FPFastMathMode FPFastMathMode
41 LinkageAttributes LiteralString LinkageType
42 NoContraction
43 InputAttachmentIndex LiteralInteger
44 Alignment LiteralInteger
45 MaxByteOffset LiteralInteger
46 AlignmentId IdRef
47 MaxByteOffsetId IdRef
4216 SaturatedToLargestFloat8NormalConversionEXT
4469 NoSignedWrap
4470 NoUnsignedWrap
4487 WeightTextureQCOM
4488 BlockMatchTextureQCOM
4499 BlockMatchSamplerQCOM
4999 ExplicitInterpAMD
5019 NodeSharesPayloadLimitsWithAMDX IdRef
5020 NodeMaxPayloadsAMDX IdRef
5078 TrackFinishWritingAMDX
5091 PayloadNodeNameAMDX IdRef
5098 PayloadNodeBaseIndexAMDX IdRef
5099 PayloadNodeSparseArrayAMDX
5100 PayloadNodeArraySizeAMDX IdRef
5105 PayloadDispatchIndirectAMDX
5124 ArrayStrideIdEXT IdRef
5125 OffsetIdEXT IdRef
5145 UTFEncodedKHR
5248 OverrideCoverageNV
5250 PassthroughNV
5252 ViewportRelativeNV
5256 SecondaryViewportRelativeNV LiteralInteger
5271 PerPrimitiveEXT
5272 PerViewNV
5273 PerTaskNV
5285 PerVertexKHR
5300 NonUniform
5355 RestrictPointer
5356 AliasedPointer
5358 MemberOffsetNV LiteralInteger
5386 HitObjectShaderRecordBufferNV
5389 HitObjectShaderRecordBufferEXT
5397 BankNV LiteralInteger
5398 BindlessSamplerNV
5399 BindlessImageNV
5400 BoundSamplerNV
5401 BoundImageNV
5440 CooperativeMatrixTransposeEXT
5599 SIMTCallINTEL LiteralInteger
5602 ReferencedIndirectlyINTEL
5607 ClobberINTEL LiteralString
5608 SideEffectsINTEL
5624 VectorComputeVariableINTEL
5625 FuncParamIOKindINTEL LiteralInteger
5626 VectorComputeFunctionINTEL
5627 StackCallINTEL
5628 GlobalVariableOffsetINTEL LiteralInteger
5634 CounterBuffer IdRef
5635 UserSemantic LiteralString
5636 UserTypeGOOGLE LiteralString
5822 FunctionRoundingModeINTEL LiteralInteger FPRoundingMode
5823 FunctionDenormModeINTEL LiteralInteger FPDenormMode
5825 RegisterALTERA
5826 MemoryALTERA LiteralString
5827 NumbanksALTERA LiteralInteger
5828 BankwidthALTERA LiteralInteger
5829 MaxPrivateCopiesALTERA LiteralInteger
5830 SinglepumpALTERA
5831 DoublepumpALTERA
5832 MaxReplicatesALTERA LiteralInteger
5833 SimpleDualPortALTERA
5834 MergeALTERA LiteralString LiteralString
5835 BankBitsALTERA LiteralInteger*
5836 ForcePow2DepthALTERA LiteralInteger
5883 StridesizeALTERA LiteralInteger
5884 WordsizeALTERA LiteralInteger
5885 TrueDualPortALTERA
5899 BurstCoalesceALTERA
5900 CacheSizeALTERA LiteralInteger
5901 DontStaticallyCoalesceALTERA
5902 PrefetchALTERA LiteralInteger
5905 StallEnableALTERA
5907 FuseLoopsInFunctionALTERA
5909 MathOpDSPModeALTERA LiteralInteger LiteralInteger
5914 AliasScopeINTEL IdRef
5915 NoAliasINTEL IdRef
5917 InitiationIntervalALTERA LiteralInteger
5918 MaxConcurrencyALTERA LiteralInteger
5919 PipelineEnableALTERA LiteralInteger
5921 BufferLocationALTERA LiteralInteger
5944 IOPipeStorageALTERA LiteralInteger
6080 FunctionFloatingPointModeINTEL LiteralInteger FPOperationMode
6085 SingleElementVectorINTEL
6087 VectorComputeCallableFunctionINTEL
6140 MediaBlockIOINTEL
6151 StallFreeALTERA
6170 FPMaxErrorDecorationINTEL LiteralFloat
6172 LatencyControlLabelALTERA LiteralInteger
6173 LatencyControlConstraintALTERA LiteralInteger LiteralInteger LiteralInteger
6175 ConduitKernelArgumentALTERA
6176 RegisterMapKernelArgumentALTERA
6177 MMHostInterfaceAddressWidthALTERA LiteralInteger
6178 MMHostInterfaceDataWidthALTERA LiteralInteger
6179 MMHostInterfaceLatencyALTERA LiteralInteger
6180 MMHostInterfaceReadWriteModeALTERA AccessQualifier
6181 MMHostInterfaceMaxBurstALTERA LiteralInteger
6182 MMHostInterfaceWaitRequestALTERA LiteralInteger
6183 StableKernelArgumentALTERA
6188 HostAccessINTEL HostAccessQualifier LiteralString
6190 InitModeALTERA InitializationModeQualifier
6191 ImplementInRegisterMapALTERA LiteralInteger
6247 ConditionalINTEL IdRef
6442 CacheControlLoadINTEL LiteralInteger LoadCacheControl
6443 CacheControlStoreINTEL LiteralInteger StoreCacheControl
7040 IntrinsicSAMSUNG LiteralInteger
value BuiltIn
0 Position
1 PointSize
3 ClipDistance
4 CullDistance
5 VertexId
6 InstanceId
7 PrimitiveId
8 InvocationId
9 Layer
10 ViewportIndex
11 TessLevelOuter
12 TessLevelInner
13 TessCoord
14 PatchVertices
15 FragCoord
16 PointCoord
17 FrontFacing
18 SampleId
19 SamplePosition
20 SampleMask
22 FragDepth
23 HelperInvocation
24 NumWorkgroups
25 WorkgroupSize
26 WorkgroupId
27 LocalInvocationId
28 GlobalInvocationId
29 LocalInvocationIndex
30 WorkDim
31 GlobalSize
32 EnqueuedWorkgroupSize
33 GlobalOffset
34 GlobalLinearId
36 SubgroupSize
37 SubgroupMaxSize
38 NumSubgroups
39 NumEnqueuedSubgroups
40 SubgroupId
41 SubgroupLocalInvocationId
42 VertexIndex
43 InstanceIndex
4160 CoreIDARM
4161 CoreCountARM
4162 CoreMaxIDARM
4163 WarpIDARM
4164 WarpMaxIDARM
4416 SubgroupEqMask
4417 SubgroupGeMask
4418 SubgroupGtMask
4419 SubgroupLeMask
4420 SubgroupLtMask
4424 BaseVertex
4425 BaseInstance
4426 DrawIndex
4432 PrimitiveShadingRateKHR
4438 DeviceIndex
4440 ViewIndex
4444 ShadingRateKHR
4492 TileOffsetQCOM
4493 TileDimensionQCOM
4494 TileApronSizeQCOM
4992 BaryCoordNoPerspAMD
4993 BaryCoordNoPerspCentroidAMD
4994 BaryCoordNoPerspSampleAMD
4995 BaryCoordSmoothAMD
4996 BaryCoordSmoothCentroidAMD
4997 BaryCoordSmoothSampleAMD
4998 BaryCoordPullModelAMD
5014 FragStencilRefEXT
5021 RemainingRecursionLevelsAMDX
5073 ShaderIndexAMDX
5122 SamplerHeapEXT
5123 ResourceHeapEXT
5253 ViewportMaskNV
5257 SecondaryPositionNV
5258 SecondaryViewportMaskNV
5261 PositionPerViewNV
5262 ViewportMaskPerViewNV
5264 FullyCoveredEXT
5274 TaskCountNV
5275 PrimitiveCountNV
5276 PrimitiveIndicesNV
5277 ClipDistancePerViewNV
5278 CullDistancePerViewNV
5279 LayerPerViewNV
5280 MeshViewCountNV
5281 MeshViewIndicesNV
5286 BaryCoordKHR
5287 BaryCoordNoPerspKHR
5292 FragSizeEXT
5293 FragInvocationCountEXT
5294 PrimitivePointIndicesEXT
5295 PrimitiveLineIndicesEXT
5296 PrimitiveTriangleIndicesEXT
5299 CullPrimitiveEXT
5319 LaunchIdKHR
5320 LaunchSizeKHR
5321 WorldRayOriginKHR
5322 WorldRayDirectionKHR
5323 ObjectRayOriginKHR
5324 ObjectRayDirectionKHR
5325 RayTminKHR
5326 RayTmaxKHR
5327 InstanceCustomIndexKHR
5330 ObjectToWorldKHR
5331 WorldToObjectKHR
5332 HitTNV
5333 HitKindKHR
5334 CurrentRayTimeNV
5335 HitTriangleVertexPositionsKHR
5337 HitMicroTriangleVertexPositionsNV
5344 HitMicroTriangleVertexBarycentricsNV
5351 IncomingRayFlagsKHR
5352 RayGeometryIndexKHR
5359 HitIsSphereNV
5360 HitIsLSSNV
5361 HitSpherePositionNV
5374 WarpsPerSMNV
5375 SMCountNV
5376 WarpIDNV
5377 SMIDNV
5396 HitLSSPositionsNV
5405 HitKindFrontFacingMicroTriangleNV
5406 HitKindBackFacingMicroTriangleNV
5420 HitSphereRadiusNV
5421 HitLSSRadiiNV
5436 ClusterIDNV
6021 CullMaskKHR
value Scope
0 CrossDevice
1 Device
2 Workgroup
3 Subgroup
4 Invocation
5 QueueFamily
6 ShaderCallKHR
value GroupOperation
0 Reduce
1 InclusiveScan
2 ExclusiveScan
3 ClusteredReduce
6 PartitionedReduceEXT
7 PartitionedInclusiveScanEXT
8 PartitionedExclusiveScanEXT
value KernelEnqueueFlags
0 NoWait
1 WaitKernel
2 WaitWorkGroup
value Capability
0 Matrix
1 Shader
2 Geometry
3 Tessellation
4 Addresses
5 Linkage
6 Kernel
7 Vector16
8 Float16Buffer
9 Float16
10 Float64
11 Int64
12 Int64Atomics
13 ImageBasic
14 ImageReadWrite
15 ImageMipmap
17 Pipes
18 Groups
19 DeviceEnqueue
20 LiteralSampler
21 AtomicStorage
22 Int16
23 TessellationPointSize
24 GeometryPointSize
25 ImageGatherExtended
27 StorageImageMultisample
28 UniformBufferArrayDynamicIndexing
29 SampledImageArrayDynamicIndexing
30 StorageBufferArrayDynamicIndexing
31 StorageImageArrayDynamicIndexing
32 ClipDistance
33 CullDistance
34 ImageCubeArray
35 SampleRateShading
36 ImageRect
37 SampledRect
38 GenericPointer
39 Int8
40 InputAttachment
41 SparseResidency
42 MinLod
43 Sampled1D
44 Image1D
45 SampledCubeArray
46 SampledBuffer
47 ImageBuffer
48 ImageMSArray
49 StorageImageExtendedFormats
50 ImageQuery
51 DerivativeControl
52 InterpolationFunction
53 TransformFeedback
54 GeometryStreams
55 StorageImageReadWithoutFormat
56 StorageImageWriteWithoutFormat
57 MultiViewport
58 SubgroupDispatch
59 NamedBarrier
60 PipeStorage
61 GroupNonUniform
62 GroupNonUniformVote
63 GroupNonUniformArithmetic
64 GroupNonUniformBallot
65 GroupNonUniformShuffle
66 GroupNonUniformShuffleRelative
67 GroupNonUniformClustered
68 GroupNonUniformQuad
69 ShaderLayer
70 ShaderViewportIndex
71 UniformDecoration
4165 CoreBuiltinsARM
4166 TileImageColorReadAccessEXT
4167 TileImageDepthReadAccessEXT
4168 TileImageStencilReadAccessEXT
4174 TensorsARM
4175 StorageTensorArrayDynamicIndexingARM
4176 StorageTensorArrayNonUniformIndexingARM
4191 GraphARM
4201 CooperativeMatrixLayoutsARM
4212 Float8EXT
4213 Float8CooperativeMatrixEXT
4228 Float6EXT
4229 Float4EXT
4230 Float8UnsignedE8M0EXT
4231 MXInt8EXT
4232 BitcastExtractEXT
4422 FragmentShadingRateKHR
4423 SubgroupBallotKHR
4427 DrawParameters
4428 WorkgroupMemoryExplicitLayoutKHR
4429 WorkgroupMemoryExplicitLayout8BitAccessKHR
4430 WorkgroupMemoryExplicitLayout16BitAccessKHR
4431 SubgroupVoteKHR
4433 StorageBuffer16BitAccess
4434 UniformAndStorageBuffer16BitAccess
4435 StoragePushConstant16
4436 StorageInputOutput16
4437 DeviceGroup
4439 MultiView
4441 VariablePointersStorageBuffer
4442 VariablePointers
4445 AtomicStorageOps
4447 SampleMaskPostDepthCoverage
4448 StorageBuffer8BitAccess
4449 UniformAndStorageBuffer8BitAccess
4450 StoragePushConstant8
4464 DenormPreserve
4465 DenormFlushToZero
4466 SignedZeroInfNanPreserve
4467 RoundingModeRTE
4468 RoundingModeRTZ
4471 RayQueryProvisionalKHR
4472 RayQueryKHR
4473 UntypedPointersKHR
4478 RayTraversalPrimitiveCullingKHR
4479 RayTracingKHR
4484 TextureSampleWeightedQCOM
4485 TextureBoxFilterQCOM
4486 TextureBlockMatchQCOM
4495 TileShadingQCOM
4496 CooperativeMatrixConversionQCOM
4498 TextureBlockMatch2QCOM
4504 BFloat16MulAddQCOM
4506 SubgroupSizeQCOM
4539 MultipleWaitQueuesQCOM
4543 ImageGatherLinearQCOM
4544 ImageGatherExtendedModesQCOM
5008 Float16ImageAMD
5009 ImageGatherBiasLodAMD
5010 FragmentMaskAMD
5013 StencilExportEXT
5015 ImageReadWriteLodAMD
5016 Int64ImageEXT
5055 ShaderClockKHR
5067 ShaderEnqueueAMDX
5087 QuadControlKHR
5112 Int4TypeINTEL
5114 Int4CooperativeMatrixINTEL
5116 BFloat16TypeKHR
5117 BFloat16DotProductKHR
5118 BFloat16CooperativeMatrixKHR
5120 AbortKHR
5128 DescriptorHeapEXT
5146 ConstantDataKHR
5156 PoisonFreezeKHR
5181 WeakLinkageAMD
5249 SampleMaskOverrideCoverageNV
5251 GeometryShaderPassthroughNV
5254 ShaderViewportIndexLayerEXT
5255 ShaderViewportMaskNV
5259 ShaderStereoViewNV
5260 PerViewAttributesNV
5265 FragmentFullyCoveredEXT
5266 MeshShadingNV
5282 ImageFootprintNV
5283 MeshShadingEXT
5284 FragmentBarycentricKHR
5288 ComputeDerivativeGroupQuadsKHR
5291 FragmentDensityEXT
5297 GroupNonUniformPartitionedEXT
5301 ShaderNonUniform
5302 RuntimeDescriptorArray
5303 InputAttachmentArrayDynamicIndexing
5304 UniformTexelBufferArrayDynamicIndexing
5305 StorageTexelBufferArrayDynamicIndexing
5306 UniformBufferArrayNonUniformIndexing
5307 SampledImageArrayNonUniformIndexing
5308 StorageBufferArrayNonUniformIndexing
5309 StorageImageArrayNonUniformIndexing
5310 InputAttachmentArrayNonUniformIndexing
5311 UniformTexelBufferArrayNonUniformIndexing
5312 StorageTexelBufferArrayNonUniformIndexing
5336 RayTracingPositionFetchKHR
5340 RayTracingNV
5341 RayTracingMotionBlurNV
5345 VulkanMemoryModel
5346 VulkanMemoryModelDeviceScope
5347 PhysicalStorageBufferAddresses
5350 ComputeDerivativeGroupLinearKHR
5353 RayTracingProvisionalKHR
5357 CooperativeMatrixNV
5363 FragmentShaderSampleInterlockEXT
5372 FragmentShaderShadingRateInterlockEXT
5373 ShaderSMBuiltinsNV
5378 FragmentShaderPixelInterlockEXT
5379 DemoteToHelperInvocation
5380 DisplacementMicromapNV
5381 RayTracingOpacityMicromapKHR
5383 ShaderInvocationReorderNV
5388 ShaderInvocationReorderEXT
5390 BindlessTextureNV
5391 RayQueryPositionFetchKHR
5394 CooperativeVectorNV
5404 AtomicFloat16VectorNV
5409 RayTracingDisplacementMicromapNV
5414 RawAccessChainsNV
5418 RayTracingSpheresGeometryNV
5419 RayTracingLinearSweptSpheresGeometryNV
5423 PushConstantBanksNV
5425 LongVectorEXT
5426 Shader64BitIndexingEXT
5429 CooperativeMatrixConversionsEXT
5430 CooperativeMatrixReductionsEXT
5431 CooperativeMatrixConversionsNV
5432 CooperativeMatrixPerElementOperationsEXT
5433 CooperativeMatrixTensorAddressingNV
5434 CooperativeMatrixBlockLoadsNV
5435 CooperativeVectorTrainingNV
5437 RayTracingClusterAccelerationStructureNV
5438 CooperativeMatrixGetCoordinateEXT
5439 TensorAddressingNV
5447 CooperativeMatrixDecodeVectorNV
5568 SubgroupShuffleINTEL
5569 SubgroupBufferBlockIOINTEL
5570 SubgroupImageBlockIOINTEL
5579 SubgroupImageMediaBlockIOINTEL
5582 RoundToInfinityINTEL
5583 FloatingPointModeINTEL
5584 IntegerFunctions2INTEL
5603 FunctionPointersINTEL
5604 IndirectReferencesINTEL
5606 AsmINTEL
5612 AtomicFloat32MinMaxEXT
5613 AtomicFloat64MinMaxEXT
5616 AtomicFloat16MinMaxEXT
5617 VectorComputeINTEL
5619 VectorAnyINTEL
5629 ExpectAssumeKHR
5696 SubgroupAvcMotionEstimationINTEL
5697 SubgroupAvcMotionEstimationIntraINTEL
5698 SubgroupAvcMotionEstimationChromaINTEL
5817 VariableLengthArrayINTEL
5821 FunctionFloatControlINTEL
5824 FPGAMemoryAttributesALTERA
5837 FPFastMathModeINTEL
5844 ArbitraryPrecisionIntegersALTERA
5845 ArbitraryPrecisionFloatingPointALTERA
5886 UnstructuredLoopControlsINTEL
5888 FPGALoopControlsALTERA
5892 KernelAttributesINTEL
5897 FPGAKernelAttributesINTEL
5898 FPGAMemoryAccessesALTERA
5904 FPGAClusterAttributesALTERA
5906 LoopFuseALTERA
5908 FPGADSPControlALTERA
5910 MemoryAccessAliasingINTEL
5916 FPGAInvocationPipeliningAttributesALTERA
5920 FPGABufferLocationALTERA
5922 ArbitraryPrecisionFixedPointALTERA
5935 USMStorageClassesALTERA
5939 RuntimeAlignedAttributeALTERA
5943 IOPipesALTERA
5945 BlockingPipesALTERA
5948 FPGARegALTERA
6016 DotProductInputAll
6017 DotProductInput4x8Bit
6018 DotProductInput4x8BitPacked
6019 DotProduct
6020 RayCullMaskKHR
6022 CooperativeMatrixKHR
6024 ReplicatedCompositesEXT
6025 BitInstructions
6026 GroupNonUniformRotateKHR
6029 FloatControls2
6030 FMAKHR
6032 RayTracingOpacityMicromapExecutionModeKHR
6033 AtomicFloat32AddEXT
6034 AtomicFloat64AddEXT
6089 LongCompositesINTEL
6094 OptNoneEXT
6095 AtomicFloat16AddEXT
6114 DebugInfoModuleINTEL
6115 BFloat16ConversionINTEL
6141 SplitBarrierEXT
6144 ArithmeticFenceEXT
6150 FPGAClusterAttributesV2ALTERA
6161 FPGAKernelAttributesv2INTEL
6162 TaskSequenceALTERA
6169 FPMaxErrorINTEL
6171 FPGALatencyControlALTERA
6174 FPGAArgumentInterfacesALTERA
6187 GlobalVariableHostAccessINTEL
6189 GlobalVariableFPGADecorationsALTERA
6220 SubgroupBufferPrefetchINTEL
6228 Subgroup2DBlockIOINTEL
6229 Subgroup2DBlockTransformINTEL
6230 Subgroup2DBlockTransposeINTEL
6236 SubgroupMatrixMultiplyAccumulateINTEL
6241 TernaryBitwiseFunctionINTEL
6243 UntypedVariableLengthArrayINTEL
6245 SpecConditionalINTEL
6246 FunctionVariantsINTEL
6257 PredicatedIOINTEL
6265 RoundedDivideSqrtINTEL
6400 GroupUniformArithmeticKHR
6425 TensorFloat32RoundingINTEL
6427 MaskedGatherScatterINTEL
6441 CacheControlsINTEL
6460 RegisterLimitsINTEL
6528 BindlessImagesINTEL
6912 DotProductFloat16AccFloat32VALVE
6913 DotProductFloat16AccFloat16VALVE
6914 DotProductBFloat16AccVALVE
6915 DotProductFloat8AccFloat32VALVE
7041 IntrinsicSAMSUNG
value RayQueryIntersection
0 RayQueryCandidateIntersectionKHR
1 RayQueryCommittedIntersectionKHR
value RayQueryCommittedIntersectionType
0 RayQueryCommittedIntersectionNoneKHR
1 RayQueryCommittedIntersectionTriangleKHR
2 RayQueryCommittedIntersectionGeneratedKHR
value RayQueryCandidateIntersectionType
0 RayQueryCandidateIntersectionTriangleKHR
1 RayQueryCandidateIntersectionAABBKHR
value PackedVectorFormat
0 PackedVectorFormat4x8Bit
mask CooperativeMatrixOperands
0 NoneKHR
1 MatrixASignedComponentsKHR
2 MatrixBSignedComponentsKHR
4 MatrixCSignedComponentsKHR
8 MatrixResultSignedComponentsKHR
16 SaturatingAccumulationKHR
value CooperativeMatrixLayout
0 RowMajorKHR
1 ColumnMajorKHR
4202 RowBlockedInterleavedARM
4203 ColumnBlockedInterleavedARM
value CooperativeMatrixUse
0 MatrixAKHR
1 MatrixBKHR
2 MatrixAccumulatorKHR
mask CooperativeMatrixReduce
1 Row
2 Column
4 2x2
value TensorClampMode
0 Undefined
1 Constant
2 ClampToEdge
3 Repeat
4 RepeatMirrored
mask TensorAddressingOperands
0 None
1 TensorView IdRef
2 DecodeFunc IdRef
4 DecodeVectorFunc IdRef
value InitializationModeQualifier
0 InitOnDeviceReprogramALTERA
1 InitOnDeviceResetALTERA
value LoadCacheControl
0 UncachedINTEL
1 CachedINTEL
2 StreamingINTEL
3 InvalidateAfterReadINTEL
4 ConstCachedINTEL
value StoreCacheControl
0 UncachedINTEL
1 WriteThroughINTEL
2 WriteBackINTEL
3 StreamingINTEL
value NamedMaximumNumberOfRegisters
0 AutoINTEL
mask MatrixMultiplyAccumulateOperands
0 None
1 MatrixASignedComponentsINTEL
2 MatrixBSignedComponentsINTEL
4 MatrixCBFloat16INTEL
8 MatrixResultBFloat16INTEL
16 MatrixAPackedInt8INTEL
32 MatrixBPackedInt8INTEL
64 MatrixAPackedInt4INTEL
128 MatrixBPackedInt4INTEL
256 MatrixATF32INTEL
512 MatrixBTF32INTEL
1024 MatrixAPackedFloat16INTEL
2048 MatrixBPackedFloat16INTEL
4096 MatrixAPackedBFloat16INTEL
8192 MatrixBPackedBFloat16INTEL
value FPEncoding
0 BFloat16KHR
4214 Float8E4M3EXT
4215 Float8E5M2EXT
4223 Float6E2M3EXT
4224 Float6E3M2EXT
4225 Float4E2M1EXT
4226 Float8UnsignedE8M0EXT
4227 MXInt8EXT
value CooperativeVectorMatrixLayout
0 RowMajorNV
1 ColumnMajorNV
2 InferencingOptimalNV
3 TrainingOptimalNV
value ComponentType
0 Float16NV
1 Float32NV
2 Float64NV
3 SignedInt8NV
4 SignedInt16NV
5 SignedInt32NV
6 SignedInt64NV
7 UnsignedInt8NV
8 UnsignedInt16NV
9 UnsignedInt32NV
10 UnsignedInt64NV
1000491000 SignedInt8PackedNV
1000491001 UnsignedInt8PackedNV
1000491002 FloatE4M3NV
1000491003 FloatE5M2NV
value GatherModes
0 Gather4x1QCOM
1 GatherDQCOM
2 GatherH2QCOM
3 GatherV2QCOM
composite PairLiteralIntegerIdRef LiteralInteger IdRef
composite PairIdRefLiteralInteger IdRef LiteralInteger
composite PairIdRefIdRef IdRef IdRef
mask TensorOperands
0 NoneARM
1 NontemporalARM
2 OutOfBoundsValueARM IdRef
4 MakeElementAvailableARM IdRef
8 MakeElementVisibleARM IdRef
16 NonPrivateElementARM
"""

EXTENDED = """\
set GLSL.std.450
1 Round
2 RoundEven
3 Trunc
4 FAbs
5 SAbs
6 FSign
7 SSign
8 Floor
9 Ceil
10 Fract
11 Radians
12 Degrees
13 Sin
14 Cos
15 Tan
16 Asin
17 Acos
18 Atan
19 Sinh
20 Cosh
21 Tanh
22 Asinh
23 Acosh
24 Atanh
25 Atan2
26 Pow
27 Exp
28 Log
29 Exp2
30 Log2
31 Sqrt
32 InverseSqrt
33 Determinant
34 MatrixInverse
35 Modf
36 ModfStruct
37 FMin
38 UMin
39 SMin
40 FMax
41 UMax
42 SMax
43 FClamp
44 UClamp
45 SClamp
46 FMix
47 IMix
48 Step
49 SmoothStep
50 Fma
51 Frexp
52 FrexpStruct
53 Ldexp
54 PackSnorm4x8
55 PackUnorm4x8
56 PackSnorm2x16
57 PackUnorm2x16
58 PackHalf2x16
59 PackDouble2x32
60 UnpackSnorm2x16
61 UnpackUnorm2x16
62 UnpackHalf2x16
63 UnpackSnorm4x8
64 UnpackUnorm4x8
65 UnpackDouble2x32
66 Length
67 Distance
68 Cross
69 Normalize
70 FaceForward
71 Reflect
72 Refract
73 FindILsb
74 FindSMsb
75 FindUMsb
76 InterpolateAtCentroid
77 InterpolateAtSample
78 InterpolateAtOffset
79 NMin
80 NMax
81 NClamp
set NonSemantic.DebugPrintf
1 DebugPrintf
set NonSemantic.Shader.DebugInfo.100
0 DebugInfoNone
1 DebugCompilationUnit
2 DebugTypeBasic
3 DebugTypePointer
4 DebugTypeQualifier
5 DebugTypeArray
6 DebugTypeVector
7 DebugTypedef
8 DebugTypeFunction
9 DebugTypeEnum
10 DebugTypeComposite
11 DebugTypeMember
12 DebugTypeInheritance
13 DebugTypePtrToMember
14 DebugTypeTemplate
15 DebugTypeTemplateParameter
16 DebugTypeTemplateTemplateParameter
17 DebugTypeTemplateParameterPack
18 DebugGlobalVariable
19 DebugFunctionDeclaration
20 DebugFunction
21 DebugLexicalBlock
22 DebugLexicalBlockDiscriminator
23 DebugScope
24 DebugNoScope
25 DebugInlinedAt
26 DebugLocalVariable
27 DebugInlinedVariable
28 DebugDeclare
29 DebugValue
30 DebugOperation
31 DebugExpression
32 DebugMacroDef
33 DebugMacroUndef
34 DebugImportedEntity
35 DebugSource
101 DebugFunctionDefinition
102 DebugSourceContinued
103 DebugLine
104 DebugNoLine
105 DebugBuildIdentifier
106 DebugStoragePath
107 DebugEntryPoint
108 DebugTypeMatrix
"""
