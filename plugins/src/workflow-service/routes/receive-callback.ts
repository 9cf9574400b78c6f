import { createHash } from "node:crypto";
import { auditActor, type Handlers, parseJsonBody, ports } from "@portico/core";
import type { AwaitedCallback } from "../access/run-tokens.ts";
import { callbackContract } from "../contracts/callback-contract.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { isTerminal } from "../contracts/run-state.ts";
import { type JsonSchema, nodeAt } from "../definition/definition.ts";
import { checkSchema } from "../definition/schema-check.ts";
import { type CallbackEnd, callbackSignal, isEvent } from "../runs/callbacks.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { toServiceError } from "../service/start-runs.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/**
 * Takes the event of a callback. It is durable before the answer. An answer about a run, or about the node, needs a token that this instance
 * signed.
 */
export function receiveCallback(services: WorkflowServices): Handlers<typeof callbackContract>["receiveCallback"] {
  const { runtime, clock, engine, audit } = services;
  const { callbacks } = runtime;
  return async ({ params: { token }, body: text, head }) => {
    try {
      const awaited = await runtime.callbackTokens.read(token);
      if (!awaited) throw workflowErrors.callback_not_found();
      const body = text === "" ? null : parseJsonBody(callbackContract.receiveCallback, text as string);
      const { runId, nodeId, attempt } = awaited;
      const signal = callbackSignal(nodeId, attempt);
      const before = await callbacks.find(runId, signal);
      if (before) throw await refused(awaited, before);
      const run = (await runtime.runs.find(runId))?.value;
      if (!run || isTerminal(run.status) || awaited.expiresAt <= clock.now()) throw workflowErrors.callback_ended();
      const value = await checked(run, awaited, body);
      const who = auditActor({ role: "link", tokenId: tokenIdOf(token) }, head);
      const at = new Date(clock.now()).toISOString();
      const earlier = await callbacks.receive(runId, signal, { body: value, at }, audit && { audit, who, nodeId });
      if (earlier) throw await refused(awaited, earlier);
      await engine.signal(runId, signal, null);
      return { accepted: true };
    } catch (error) {
      throw toCallbackError(error);
    }
  };

  /** The event with the defaults of the node's schema. */
  async function checked(run: RunRecord, { nodeId }: AwaitedCallback, body: unknown): Promise<unknown> {
    const held = await runtime.definitions.hold(run.workflowId, run.definition);
    try {
      const node = held.definition && nodeAt(held.definition, nodeId)?.node;
      if (!node) throw workflowErrors.callback_ended();
      const { schema } = node.with;
      if (schema?.kind !== "verbatim") return body;
      const result = await checkSchema(runtime.checks, schema.value as JsonSchema, body);
      if ("faults" in result) throw workflowErrors.invalid_callback(undefined, { body: result.faults });
      return result.value;
    } finally {
      held.release();
    }
  }

  async function refused({ runId, nodeId, attempt }: AwaitedCallback, end: CallbackEnd): Promise<Error> {
    if (!isEvent(end)) return workflowErrors.callback_ended();
    if (end.isRepeated) return workflowErrors.callback_used();
    // The process that took the event may have died before it woke the run up. The engine keeps signals, so callers cannot cause many of them.
    const signal = callbackSignal(nodeId, attempt);
    await engine.signal(runId, signal, null);
    await callbacks.noteRepeated(runId, signal);
    return workflowErrors.callback_used();
  }
}

/** The audit names the address by a part of its digest, which answers nothing. */
function tokenIdOf(token: string): string {
  return `callback_${createHash("sha256").update(token).digest("base64url").slice(0, 16)}`;
}

/** A sender repeats the call after a 503: what was stored already is then `callback_used`. */
function toCallbackError(error: unknown): unknown {
  if (error instanceof ports.EngineFenced) return workflowErrors.workflow_owner_fenced(undefined, undefined, error);
  const known = toServiceError(error);
  return known === error ? error : workflowErrors.store_unavailable(undefined, undefined, error);
}
