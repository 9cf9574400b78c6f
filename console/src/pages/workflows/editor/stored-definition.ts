import { CallFailed, type CallHeaders, type CallResult, type Client } from "@portico/core/client";
import { workflowEditingContract } from "@portico/plugins/workflow-service/editing-contract";
import type { CodeLanguage } from "../../../blocks/code-editor/code-editor.ts";
import { readText, type StoredText, TextChanged, withLineEnds } from "../../../blocks/text-editing/stored-text.ts";
import type { Instance } from "../../../api/instance.ts";
import { issueEditingGrant } from "../workflow-calls.ts";

export type CheckedText = CallResult<typeof workflowEditingContract.checkDefinition>;
export type TestedCase = CallResult<typeof workflowEditingContract.testDefinition>["cases"][number];
type Calls = Client<typeof workflowEditingContract>;

/** The text of a definition. */
export interface StoredDefinition extends StoredText {
  readonly language: CodeLanguage;
}

/** Calls with which authors edit definitions. */
export function editingCalls({ workflow }: Instance): Calls {
  return workflow.client(workflowEditingContract);
}

/** Undefined for an unknown workflow. Throws CallFailed. */
export async function readStored(calls: Calls, id: string, signal?: AbortSignal): Promise<StoredDefinition | undefined> {
  try {
    const answer = await calls.definitionText({ params: { id }, ...(signal && { signal }) });
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    return { ...(await readText(answer)), language: isJson ? "json" : "yaml" };
  } catch (error) {
    if (CallFailed.is(error) && error.status === 404) return undefined;
    throw error;
  }
}

/** `before`: the text that the author has read, or undefined for a new workflow. Throws TextChanged and CallFailed. */
export async function saveText(
  instance: Instance,
  { id, text, before }: { readonly id: string; readonly text: string; readonly before: StoredDefinition | undefined },
): Promise<StoredDefinition> {
  const { lineEnd = "\n", language = "yaml" } = before ?? {};
  const condition: CallHeaders = before ? { "if-match": before.etag } : { "if-none-match": "*" };
  const headers = { "x-execution-grant": await issueEditingGrant(instance, id), ...condition };
  try {
    const { saveDefinition } = editingCalls(instance);
    const { etag } = await saveDefinition({ params: { id }, body: { text: withLineEnds(text, before) }, headers });
    return { text, lineEnd, language, etag };
  } catch (error) {
    if (CallFailed.is(error) && error.status === 412) throw new TextChanged("The definition has changed", { cause: error });
    throw error;
  }
}
