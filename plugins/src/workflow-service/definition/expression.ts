/** What expressions can name. Absent names are null for them; what a name holds is JSON and is not changed. */
export interface ExpressionScope {
  readonly parameters: unknown;
  /** By node id: `output` is absent while, and where, there is none. */
  readonly nodes: Readonly<Record<string, { readonly status: string; readonly output?: unknown }>>;
  readonly run: { readonly id: string; readonly workflowId: string; readonly startedAt: string };
  readonly secrets: Readonly<Record<string, string>>;
  /** Inside `map` and `loop`. */
  readonly item?: unknown;
  readonly index?: number | undefined;
  readonly previous?: unknown;
}

/** A CEL expression that was parsed and whose names were checked when its definition was loaded. */
export interface Expression {
  readonly source: string;
  /** Answers JSON. Throws ExpressionFailed. */
  evaluate(scope: ExpressionScope): unknown;
}

/**
 * Any JSON whose texts may have `${{ expression }}` in them: alone it keeps its value's type, inside a longer text it becomes text, objects as
 * JSON.
 */
export interface Template {
  /** The value with every template filled in. Throws ExpressionFailed. */
  fill(scope: ExpressionScope): unknown;
}

/** Thrown by an expression that cannot be evaluated. The message quotes the expression and the reason, never a value of the scope. */
export class ExpressionFailed extends Error {
  override readonly name = "ExpressionFailed";
}
