import { createHash } from "node:crypto";
import {
  auditActor,
  auditWriter,
  type AuditWriter,
  checkConditions,
  checkReplacement,
  definePlugin,
  type Guard,
  type Handlers,
  optional,
  ownerGuard,
  ownerScheme,
  ports,
  type RequestHead,
  ServiceError,
} from "@portico/core";
import * as v from "valibot";
import { checkText, namedProblems } from "./check-text.ts";
import { agentDocumentErrors, agentDocumentsContract } from "./contract.ts";

/** `/api/agents/:id/document` on surface `agent`: the texts of the agents, for the instance's owner. */
export const agentDocuments = definePlugin({
  name: "agent-documents",
  summary: "The texts of the agents: read, check, write and remove them.",
  config: v.strictObject({
    /** Whether the texts can be saved and removed. Default: true. */
    editable: v.optional(v.boolean(), true),
  }),
  needs: {
    agents: ports.agents,
    engines: ports.agentEngines,
    turns: optional(ports.backgroundTurns),
    identity: ports.identity,
    records: ports.records,
    audit: optional(ports.audit),
  },
  contract: agentDocumentsContract,
  security: { owner: ownerScheme },
  capabilities: ({ editable }) => (editable ? ["agentDocuments"] : []),
  guards: ({ identity }) => ({ owner: ownerGuard(identity, agentDocumentErrors) }),
  setup: ({ audit, records, ...given }, { editable }) =>
    documentHandlers({ ...given, editable, audit: auditWriter(audit, records) }),
});

type DocumentHandlers = Handlers<typeof agentDocumentsContract, { readonly owner: Guard<Promise<ports.Caller>> }>;

/** Reads, writes and removes the texts of agents. */
function documentHandlers({
  agents,
  audit,
  editable,
  engines,
  turns,
}: {
  readonly agents: ports.Agents;
  readonly audit: AuditWriter;
  readonly editable: boolean;
  readonly engines: readonly ports.AgentEngine[];
  readonly turns: ports.BackgroundTurns | undefined;
}): DocumentHandlers {
  const textsOf = (): ports.AgentTexts => {
    if (!agents.texts) throw agentDocumentErrors.agents_not_editable();
    return agents.texts;
  };
  const writableTexts = (): ports.AgentTexts => {
    if (!editable) throw agentDocumentErrors.agents_not_editable();
    return textsOf();
  };
  const find = (id: string) => textsOf().read(id).catch(toDocumentError);
  /** The text has changed between reading and writing. */
  const conflict = async (id: string, error: unknown): Promise<never> => {
    if (!(error instanceof ports.DocumentConflict)) return toDocumentError(error);
    throw changed(await find(id), error);
  };

  return {
    async read({ params: { id }, head, fail }) {
      const document = await find(id);
      if (!document) throw fail.agent_document_not_found();
      const etag = etagOf(document);
      const headers = { etag, "cache-control": "no-cache", "content-type": "application/json" };
      const outcome = checkConditions(head, { etag });
      if (outcome === "not_modified") return new Response(null, { status: 304, headers });
      if (outcome === "precondition_failed") throw changed(document);
      return new Response(document.text, { headers });
    },
    async save({ params: { id }, body: { text }, who, head, fail }) {
      const texts = writableTexts();
      const before = await find(id);
      assertCondition(head, before);
      const problems = checkText(texts, { text, before: before?.text, userId: who.userId });
      if (problems.some(({ severity }) => severity === "error")) throw fail.agent_document_invalid(undefined, { problems });
      const saved = { agentId: id, created: before === undefined, warnings: problems };
      if (before?.text === text) return { ...saved, etag: etagOf(before) };
      const action = before ? "agent-document.replace" : "agent-document.create";
      const fact = { action, object: id, who: auditActor(who, head) };
      const written = await audit
        .attempt(fact, () => texts.write(id, text, before?.version ?? "absent"))
        .catch((error: unknown) => conflict(id, error));
      return { ...saved, etag: etagOf(written) };
    },
    async remove({ params: { id }, who, head, fail }) {
      const texts = writableTexts();
      const before = await find(id);
      if (!before) throw fail.agent_document_not_found();
      if (head.header("if-match") === undefined) throw fail.precondition_required();
      assertCondition(head, before);
      const fact = { action: "agent-document.delete", object: id, who: auditActor(who, head) };
      await audit.attempt(fact, () => texts.remove(id, before.version)).catch((error: unknown) => conflict(id, error));
      return { agentId: id, removed: true };
    },
    async check({ params: { id }, body: { text }, who, signal }) {
      const before = await find(id);
      const named = await namedProblems(turns, id, text, signal);
      return { problems: checkText(textsOf(), { text, before: before?.text, userId: who.userId, named }) };
    },
    async choices({ params: { id }, signal }) {
      textsOf();
      const [tools = [], skills = []] = await Promise.all([
        turns?.tools(signal),
        agents.skillPaths?.(id).catch((error: unknown) => {
          if (!(error instanceof ports.AgentsUnavailable)) throw error;
          throw agentDocumentErrors.store_unavailable(undefined, undefined, error);
        }),
      ]);
      return {
        engines: engines.map((engine) => engine.id).toSorted(),
        tools: tools.map(({ id: toolId, name, description, riskLevel, requiresConfirmation }) => ({
          ...{ id: toolId, name, description, riskLevel, requiresConfirmation },
        })),
        skills: [...skills],
      };
    },
    schema: async () => ({ ...textsOf().schema() }),
  };
}

/** Throws unless the request names the state that it replaces. */
function assertCondition(head: RequestHead, document: ports.Document | undefined): void {
  const outcome = checkReplacement(head, document && etagOf(document));
  if (outcome === "precondition_required") throw agentDocumentErrors.precondition_required();
  if (outcome === "precondition_failed") throw changed(document);
}

/** A strong entity tag: it changes with every byte of the text. */
function etagOf({ text }: ports.Document): string {
  return `"${createHash("sha256").update(text).digest("base64url")}"`;
}

function changed(document: ports.Document | undefined, cause?: unknown): ServiceError {
  const headers = document && { headers: { etag: etagOf(document) } };
  return new ServiceError(agentDocumentErrors.agent_document_changed, { ...headers, cause });
}

function toDocumentError(error: unknown): never {
  if (error instanceof ports.AgentTextsReadOnly) throw agentDocumentErrors.agents_not_editable(undefined, undefined, error);
  if (error instanceof ports.DocumentsUnavailable) throw agentDocumentErrors.store_unavailable(undefined, undefined, error);
  throw error;
}
