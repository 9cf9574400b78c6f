/** The values that expressions can name. Absent names are null. The values are JSON and are never changed. */
export interface ExpressionScope {
  readonly parameters: unknown;
  /** Nodes by id. `output` is absent if the node has no output, or has not ended yet. */
  readonly nodes: Readonly<Record<string, { readonly status: string; readonly output?: unknown }>>;
  readonly run: { readonly id: string; readonly workflowId: string; readonly startedAt: string };
  readonly secrets: Readonly<Record<string, string>>;
  /** Only inside `map` and `loop`. */
  readonly item?: unknown;
  readonly index?: number | undefined;
  readonly previous?: unknown;
  /** Only in the body of a gate's notification. */
  readonly gate?: unknown;
  /** Only in the body of a callback's request. */
  readonly callback?: unknown;
  /** Only in `onFailure`. */
  readonly failure?: unknown;
  /** Only in `retry.if`: why the last attempt failed. */
  readonly error?: unknown;
  /** Called with the read values and the result of each expression that may make new texts of what it reads. */
  readonly derived?: ((read: readonly unknown[], made: unknown) => void) | undefined;
  /**
   * Results by source. If set, an expression whose result is in it is not evaluated again, other results are added, and evaluations that
   * would block the event loop throw TakesLong and TurnUsed.
   */
  readonly results?: Map<string, Evaluated> | undefined;
}

/** The result of an expression, or the reason why it failed. */
export type Evaluated = { readonly value: unknown } | { readonly reason: string };

/** A CEL expression. Loading its definition parsed it and checked its names. */
export interface Expression {
  readonly source: string;
  /** Returns JSON. Throws ExpressionFailed. */
  evaluate(scope: ExpressionScope): unknown;
}

/**
 * Any JSON whose texts may contain `${{ expression }}`. If a text is only an expression, the value keeps its type. Inside a longer text, the
 * value becomes text, and objects become JSON.
 */
export interface Template {
  /** Its expressions, in the order in which `fill` evaluates them. */
  readonly expressions: readonly Expression[];
  /** The value with every template filled in. Throws ExpressionFailed. */
  fill(scope: ExpressionScope): unknown;
}

/** Thrown by an expression whose evaluation would block the event loop for long. `scope` has the values that it reads. */
export class TakesLong extends Error {
  override readonly name = "TakesLong";
  readonly source: string;
  readonly scope: ExpressionScope;

  constructor(source: string, scope: ExpressionScope) {
    super("The expression takes long");
    this.source = source;
    this.scope = scope;
  }
}

/** Thrown instead of an evaluation that must wait, because other evaluations have used the time of this turn of the event loop. */
export class TurnUsed extends Error {
  override readonly name = "TurnUsed";

  constructor() {
    super("The expression is evaluated in a later turn of the event loop");
  }
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
