import { Refused } from "../refused.ts";
import type { SyntaxNode } from "../syntax-tree.ts";
import { sortedBy } from "./compare-values.ts";
import type { Spend } from "./library-function.ts";

interface Written {
  readonly ast: SyntaxNode;
  readonly args: readonly [SyntaxNode, SyntaxNode];
  readonly receiver: SyntaxNode;
}

/** The macro `list.sortBy(x, KEY)`. The library's macros have no public types. */
export function sortByMacro(spend: Spend) {
  return ({ ast, args, receiver }: Written) => {
    const [variable, key] = args;
    let inner: any;
    return {
      ast,
      typeCheck(checker: any, _macro: unknown, context: any) {
        if (variable.op !== "id") {
          throw checker.createError("invalid_macro_argument", "sortBy(x, KEY) takes the name of a variable first", variable);
        }
        const list = checker.check(receiver, context);
        if (list.kind !== "dyn" && list.kind !== "list") {
          throw checker.createError(
            "no_matching_overload",
            `found no matching overload for '${list.type}.sortBy(ast, ast)'`,
            ast,
          );
        }
        inner = context.forkWithVariable(variable.args, list.valueType ?? checker.getType("dyn"));
        checker.check(key, inner);
        return list;
      },
      evaluate(evaluator: any, _macro: unknown, context: any) {
        const list: unknown = evaluator.run(receiver, context);
        if (!Array.isArray(list)) throw new Refused("sortBy() takes a list");
        const keys = list.map((each) => {
          spend(1);
          return evaluator.run(key, inner.reuse(context).setIterValue(each, evaluator)) as unknown;
        });
        return sortedBy(list, keys, spend);
      },
    };
  };
}
