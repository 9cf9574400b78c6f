/** One call of a tool, as the receipt of its turn has it. */
export interface FoundCall {
  readonly tool: string;
  readonly arguments: unknown;
  readonly isError: boolean;
}

/** What a turn did, or all turns of a case together. */
export interface FoundTurn {
  readonly status: "completed" | "failed" | "interrupted" | "waiting";
  /** Why a completed turn ended. */
  readonly end?: string | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  readonly output: string;
  readonly calls: readonly FoundCall[];
  readonly modelCalls: number;
  /** Undefined if no answer of the model said it. */
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** By the prices of the configuration. */
  readonly cost?: number | undefined;
  /** From the acceptance to the end, with the time that it waited for a person. */
  readonly durationMs: number;
}
