import type { InferOutput } from "valibot";
import type { runMetadata } from "../contract.ts";

/** A run as it is stored and shown (specification 2.11). */
export type Run = InferOutput<typeof runMetadata>;
