/** A JSONata expression and the JSON of its input, which may be absent. */
export interface TransformJob {
  readonly jsonata: string;
  readonly input?: string | undefined;
}

export const TRANSFORM_CPU_MS = 2_000;
export const TRANSFORM_MEMORY_MB = 64;
export const JSONATA_CHARACTERS = 64 * 1024;
