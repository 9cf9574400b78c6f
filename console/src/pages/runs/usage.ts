/** The shown part of a receipt's usage. The format depends on the engine (specification 2.12), so any field may be missing. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
  readonly modelCalls?: number;
}

const FIELDS = ["inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens", "modelCalls"] as const;

/** The available counts. */
export function readUsage(value: unknown): Usage {
  if (typeof value !== "object" || value === null) return {};
  const found = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(FIELDS.flatMap((field) => (typeof found[field] === "number" ? [[field, found[field]]] : [])));
}

/** A field is absent if no receipt has it: not reported is not zero. */
export function sumUsage(each: readonly Usage[]): Usage {
  return Object.fromEntries(
    FIELDS.flatMap((field) => {
      const counts = each.flatMap((usage) => usage[field] ?? []);
      return counts.length > 0 ? [[field, counts.reduce((sum, count) => sum + count, 0)]] : [];
    }),
  );
}
