/** Reports the cost of an evaluation. Throws Refused if the expression takes too many steps. */
export type Spend = (steps: number) => void;

/** One function of expressions: its overloads, and its documentation. */
export interface LibraryFunction {
  /** How a call is written: `TEXT.replace(OLD, NEW)`. */
  readonly usage: string;
  /** One or two sentences for authors of definitions. */
  readonly summary: string;
  /** An expression, and its value as JSON. A test evaluates it. */
  readonly example: readonly [expression: string, value: unknown];
  /**
   * Implementations by signature. A function of a namespace, such as `math.abs`, is declared on the namespace's type (`MathNamespace`) and
   * gets the namespace as its first argument. Functions that CEL defines have no overloads here.
   */
  overloads?(spend: Spend): Readonly<Record<string, (...values: any[]) => unknown>>;
}

/** Functions that are documented under one heading. */
export interface FunctionGroup {
  readonly title: string;
  readonly functions: readonly LibraryFunction[];
}
