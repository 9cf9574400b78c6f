import type { Environment } from "@marcbachmann/cel-js/evaluator";
import { encodingFunctions, hashFunctions } from "./encoding-functions.ts";
import type { FunctionGroup, Spend } from "./library-function.ts";
import { listFunctions } from "./list-functions.ts";
import { mathFunctions } from "./math-functions.ts";
import { textFunctions } from "./text-functions.ts";
import { timeFunctions } from "./time-functions.ts";

/** All documented functions of expressions. None reads a clock or chance, because expressions are evaluated again after a crash. */
export const FUNCTION_GROUPS: readonly FunctionGroup[] = [
  ...[textFunctions, listFunctions, mathFunctions, timeFunctions],
  ...[encodingFunctions, hashFunctions],
];

/** Names with functions, such as `math` in `math.abs`. */
export const NAMESPACES: readonly string[] = ["base64", "hash", "json", "lists", "math", "sets", "url"];

/** Adds the functions to the language. */
export function registerLibrary(language: Environment, spend: Spend): void {
  for (const name of NAMESPACES) {
    const type = `${name[0]!.toUpperCase()}${name.slice(1)}Namespace`;
    // Each namespace is a type of its own: its functions are declared on that type.
    const namespace = class {
      readonly name = name;
    };
    language.registerType(type, namespace);
    language.registerConstant(name, type, new namespace());
  }
  for (const { functions } of FUNCTION_GROUPS) {
    for (const { overloads } of functions) {
      for (const [signature, call] of Object.entries(overloads?.(spend) ?? {})) language.registerFunction(signature, call);
    }
  }
}
