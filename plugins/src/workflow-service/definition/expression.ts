/** What expressions can name. Absent names are null for them; what a name holds is JSON and is not changed. */
export interface ExpressionScope {
  readonly parameters: unknown;
  /** By node id. `output` is absent if the node has no output, or none yet. */
  readonly nodes: Readonly<Record<string, { readonly status: string; readonly output?: unknown }>>;
  readonly run: { readonly id: string; readonly workflowId: string; readonly startedAt: string };
  readonly secrets: Readonly<Record<string, string>>;
  /** Inside `map` and `loop`. */
  readonly item?: unknown;
  readonly index?: number | undefined;
  readonly previous?: unknown;
  /** Told what an expression read and came to that may make other texts of what it reads. */
  readonly derived?: ((read: readonly unknown[], made: unknown) => void) | undefined;
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

  constructor(source: string, reason: string) {
    const shown = source.length > SHOWN_CHARACTERS ? `${source.slice(0, SHOWN_CHARACTERS)}…` : source;
    super(`The expression \`${shown}\` failed: ${reason}`);
  }
}

const SHOWN_CHARACTERS = 200;
