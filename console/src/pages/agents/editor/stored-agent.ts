import { CallFailed, type CallHeaders, type Client } from "@portico/core/client";
import { agentDocumentsContract } from "@portico/plugins/agent-documents/contract";
import type { Instance } from "../../../api/instance.ts";
import { readText, type StoredText, TextChanged, withLineEnds } from "../../../blocks/text-editing/stored-text.ts";

type Calls = Client<typeof agentDocumentsContract>;

/** Calls with which owners edit agents. */
export function editingCalls(instance: Instance): Calls {
  return instance.client(agentDocumentsContract);
}

/** Undefined for an agent without an `agent.json`. Throws CallFailed. */
export async function readStored(calls: Calls, id: string, signal?: AbortSignal): Promise<StoredText | undefined> {
  try {
    return await readText(await calls.read({ params: { id }, ...(signal && { signal }) }));
  } catch (error) {
    if (CallFailed.is(error) && error.status === 404) return undefined;
    throw error;
  }
}

/** `before`: the text that the author has read, or undefined for a new agent. Throws TextChanged and CallFailed. */
export async function saveText(calls: Calls, id: string, text: string, before: StoredText | undefined): Promise<StoredText> {
  const headers: CallHeaders = before ? { "if-match": before.etag } : { "if-none-match": "*" };
  const body = { text: withLineEnds(text, before) };
  const { etag } = await calls.save({ params: { id }, body, headers }).catch(toChanged);
  return { text, lineEnd: before?.lineEnd ?? "\n", etag };
}

/** Throws TextChanged and CallFailed. */
export async function removeText(calls: Calls, id: string, { etag }: StoredText): Promise<void> {
  await calls.remove({ params: { id }, headers: { "if-match": etag } }).catch(toChanged);
}

function toChanged(error: unknown): never {
  if (CallFailed.is(error) && error.status === 412) throw new TextChanged("The agent.json has changed", { cause: error });
  throw error;
}
