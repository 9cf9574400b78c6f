import { CallFailed, type CallHeaders, type Client } from "@portico/core/client";
import { agentDocumentsContract } from "@portico/operator/agent-documents/contract";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import type { Instance } from "../../../api/instance.ts";
import { readText, type StoredText, TextChanged, withLineEnds } from "../../../blocks/text-editing/stored-text.ts";
import type { AgentChoices } from "./form-state.ts";

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

/** What the text of an agent can name. Without a list, the form takes any text. */
export async function readChoices(instance: Instance, id: string, signal: AbortSignal): Promise<AgentChoices> {
  const [providers, named] = await Promise.all([
    instance
      .client(safeTokenContract)
      .providers({ signal })
      .then(
        (found) => found.providers.map(({ id: providerId, models = [] }) => ({ id: providerId, models })),
        () => [],
      ),
    editingCalls(instance)
      .choices({ params: { id }, signal })
      .catch(() => ({ engines: [], tools: [], skills: [] })),
  ]);
  const tools = named.tools.toSorted((one, other) => one.id.localeCompare(other.id));
  return {
    ...{ providers, engines: named.engines },
    tools: tools.map(({ id: toolId, name, description, riskLevel, requiresConfirmation }) => {
      const server = toolId.includes("/") ? `MCP server ${toolId.split("/", 1)[0]}. ` : "";
      const asks = requiresConfirmation ? " A person confirms each call." : "";
      return { id: toolId, name, riskLevel, note: `${server}${description}${asks}` };
    }),
    skills: named.skills.map((path) => ({ id: path })),
  };
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
