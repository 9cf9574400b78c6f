import { isDeepStrictEqual } from "node:util";
import { ports } from "@portico/core";
import { withoutByteOrderMark } from "@portico/core/contract";
import { editJsonText } from "./edit-json-text.ts";
import { type EventBody, readWebhooks, type WebhookConfiguration, type WebhookEvent } from "./webhook-configuration.ts";

/** The `webhooks` part of each agent's `agent.json`. People may edit the file at the same time (open points 5). */
export interface WebhookDocument {
  /** The webhooks of an agent, after all earlier calls of `change` have ended. Throws WebhookConfigurationInvalid as `change` does. */
  read(agentId: string): Promise<WebhookConfiguration>;
  /**
   * Change the webhooks of an agent. `decide` receives the present webhooks and returns the change. The agent's file is written only if the
   * change differs from its content. The rest of the file stays unchanged, including its layout. Resolves to the new webhooks when they are
   * stored durably.
   *
   * Changes of one agent run one after another, so changes of this process do not conflict. `decide` must not wait for another change of
   * the same agent. If `decide` throws, the error is passed on and nothing is written. Throws WebhookConfigurationInvalid, and leaves the
   * file unchanged, if the file is missing, is not a JSON object, has webhooks that do not match their schema, or cannot be edited safely
   * because a name occurs twice. Throws WebhookConfigurationChanged if the file was changed by another program in the meantime. Errors of
   * `documents` are passed on.
   */
  change(
    agentId: string,
    decide: (configuration: WebhookConfiguration) => WebhookChange | Promise<WebhookChange>,
  ): Promise<WebhookConfiguration>;
}

/** The changes; other parts stay unchanged. */
export interface WebhookChange {
  readonly enabled?: boolean | undefined;
  /** An event to create or replace. Unknown keys of a replaced event stay. */
  readonly save?: SavedEvent | undefined;
  /** The name of an event to remove. It is removed before `save` is applied. */
  readonly remove?: string | undefined;
}

export interface SavedEvent extends EventBody {
  readonly name: string;
  readonly fileScope: NonNullable<WebhookEvent["fileScope"]>;
}

/** Thrown if the webhooks of an `agent.json` cannot be read or safely changed. The message contains nothing from the file. */
export class WebhookConfigurationInvalid extends Error {
  override readonly name = "WebhookConfigurationInvalid";
}

/** Thrown when an `agent.json` was changed between reading and writing; nothing was written. */
export class WebhookConfigurationChanged extends Error {
  override readonly name = "WebhookConfigurationChanged";
}

type JsonObject = Readonly<Record<string, unknown>>;

/** A member of the file and its new value; undefined removes it. */
type Edit = readonly [path: readonly string[], value: unknown];

/** Changes of webhooks in `ID/agent.json` of these documents. */
export function createWebhookDocument({ documents }: { readonly documents: ports.Documents }): WebhookDocument {
  const turns = new Map<string, Promise<unknown>>();
  const inTurn = async <T>(agentId: string, work: () => Promise<T>): Promise<T> => {
    const before = turns.get(agentId) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(work);
    turns.set(agentId, turn);
    try {
      return await turn;
    } finally {
      if (turns.get(agentId) === turn) turns.delete(agentId);
    }
  };

  const webhooks: WebhookDocument = {
    read: (agentId) => webhooks.change(agentId, () => ({})),
    change: (agentId, decide) =>
      inTurn(agentId, async () => {
        const document = await documents.read(`${agentId}/agent.json`);
        if (!document) throw new WebhookConfigurationInvalid("agent.json does not exist");
        const definition = readDefinition(document.text);
        const configuration = configurationOf(definition);
        const edits = toEdits(configuration, await decide(configuration));
        if (edits.length === 0) return configuration;
        const text = edited(document.text, edits, definition);
        const changed = configurationOf(readDefinition(text));
        await write(documents, document, text);
        return changed;
      }),
  };
  return webhooks;
}

function readDefinition(text: string): JsonObject {
  let definition: unknown;
  try {
    definition = JSON.parse(withoutByteOrderMark(text));
  } catch {
    // The cause is left out, because it quotes the text.
    throw new WebhookConfigurationInvalid("agent.json is not JSON");
  }
  if (typeof definition === "object" && definition !== null && !Array.isArray(definition)) return definition as JsonObject;
  throw new WebhookConfigurationInvalid("agent.json is not a JSON object");
}

function configurationOf(definition: JsonObject): WebhookConfiguration {
  const configuration = readWebhooks(definition["webhooks"]);
  if (!configuration) throw new WebhookConfigurationInvalid("The webhooks of agent.json do not match their schema");
  return configuration;
}

/** Only values that differ, so that keys which a person left out stay left out. */
function toEdits({ enabled, events }: WebhookConfiguration, { enabled: wanted = enabled, remove, save }: WebhookChange): Edit[] {
  const edits: Edit[] = [];
  if (wanted !== enabled) edits.push([["webhooks", "enabled"], wanted]);
  if (remove !== undefined && events.has(remove)) edits.push([["webhooks", "events", remove], undefined]);
  if (save) edits.push(...toSaveEdits(save.name === remove ? undefined : events.get(save.name), save));
  return edits;
}

function toSaveEdits(
  known: WebhookEvent | undefined,
  { name, promptTemplate, toolIds, maxTurns, fileScope }: SavedEvent,
): Edit[] {
  const path = ["webhooks", "events", name];
  if (!known) return [[path, { promptTemplate, toolIds, maxTurns, fileScope: { userId: fileScope.userId } }]];
  const edits: Edit[] = [];
  if (promptTemplate !== known.promptTemplate) edits.push([[...path, "promptTemplate"], promptTemplate]);
  if (!isDeepStrictEqual(toolIds, known.toolIds)) edits.push([[...path, "toolIds"], toolIds]);
  if (maxTurns !== known.maxTurns) edits.push([[...path, "maxTurns"], maxTurns]);
  if (fileScope.userId !== known.fileScope?.userId) edits.push([[...path, "fileScope", "userId"], fileScope.userId]);
  return edits;
}

/** Applies the edits to the text. Checks that the new text parses to the definition with the same edits. */
function edited(text: string, edits: readonly Edit[], definition: JsonObject): string {
  let cause: unknown;
  try {
    const after = edits.reduce((before, [path, value]) => editJsonText(before, path, value), text);
    const meant = edits.reduce((before, [path, value]) => withMember(before, path, value), definition);
    if (isDeepStrictEqual(readDefinition(after), meant)) return after;
  } catch (error) {
    cause = error;
  }
  // A name occurs twice (the editor changes the first, JSON.parse reads the last), or the text nests too deeply for the stack.
  throw new WebhookConfigurationInvalid("agent.json cannot be edited safely", { cause });
}

function withMember(object: JsonObject, [key = "", ...rest]: readonly string[], value: unknown): JsonObject {
  const { [key]: inner = {}, ...others } = object;
  if (rest.length > 0) return { ...object, [key]: withMember(inner as JsonObject, rest, value) };
  return value === undefined ? others : { ...object, [key]: value };
}

async function write(documents: ports.Documents, { name, version }: ports.Document, text: string): Promise<void> {
  try {
    await documents.write(name, text, version);
  } catch (cause) {
    if (!(cause instanceof ports.DocumentConflict)) throw cause;
    throw new WebhookConfigurationChanged("agent.json was changed in the meantime", { cause });
  }
}
