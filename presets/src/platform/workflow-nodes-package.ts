import { defineWorkflowNode, jsonObject, ports } from "@portico/core";
import { ifInstalled } from "./if-installed.ts";

const PACKAGE = "@portico/workflow-nodes";

const found = await ifInstalled(PACKAGE, async () => {
  const [code, http, transform] = await Promise.all([
    import("@portico/workflow-nodes/code"),
    import("@portico/workflow-nodes/http"),
    import("@portico/workflow-nodes/transform"),
  ]);
  return { ...code, ...http, ...transform };
});

type Found = NonNullable<typeof found>;

/** The kind `code`. */
export const codeNode: Found["codeNode"] = found?.codeNode ?? missing("code");
/** The kind `http`. */
export const httpNode: Found["httpNode"] = found?.httpNode ?? missing("http");
/** The kind `transform`. */
export const transformNode: Found["transformNode"] = found?.transformNode ?? missing("transform");

/** A kind whose package is not installed. Definitions that use it are refused, and say what to install. */
function missing(type: string) {
  const message = `Nodes of type ${type} need the package ${PACKAGE}: install it`;
  return defineWorkflowNode({
    name: `workflow-nodes/${type}`,
    needs: {},
    rules: (_options: unknown) => ({
      type,
      input: jsonObject,
      repeatable: false,
      check: () => [{ path: [], message }],
    }),
    open: () => ({
      run: () => Promise.reject(new ports.NodeFailed("package_not_installed", message, { retryable: false })),
    }),
  });
}
