import { httpNode } from "@portico/workflow-nodes/http";
import { expect } from "vitest";
import type { HookServer } from "./hook-server.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "./workflow-app.ts";

/** Where services reach the service. */
const PUBLIC_URL = "https://workflows.example/in-front/";

/** A workflow of one callback, which gives a hook its address. */
export function paid({ url }: Pick<HookServer, "url">, callback: object = {}, node: object = {}): object {
  return {
    nodes: {
      pay: {
        type: "callback",
        with: { request: { url, body: { to: "${{ callback.url }}", until: "${{ callback.expiresAt }}" } }, ...callback },
        ...node,
      },
    },
    outputs: { event: "${{ nodes.pay.output }}" },
  };
}

/** A service with that workflow. */
export function startPaid(
  hook: HookServer,
  options: WorkflowServiceOptions = {},
  callback: object = {},
  node: object = {},
): Promise<WorkflowService> {
  return startWorkflowService({
    definitions: { "paid.json": paid(hook, callback, node) },
    adapters: [httpNode({ allow: [hook.host] })],
    runtime: { publicUrl: PUBLIC_URL },
    ...options,
  });
}

/** The path of the address that the hook received last. */
export function addressIn(hook: HookServer, at = -1) {
  const { to, until } = hook.received.at(at)!.body as { to: string; until: string };
  expect(to.startsWith(`${PUBLIC_URL}callback/callback_`)).toBe(true);
  return { until, path: to.slice(to.indexOf("/callback/")), token: to.split("/callback/")[1]! };
}

/** A run that waits, and the address that it gave to the hook. */
export async function waitingCallback(service: WorkflowService, hook: HookServer, parameters: object = {}) {
  const before = hook.received.length;
  const runId = await service.trigger("paid", parameters);
  await expect.poll(() => hook.received.length).toBe(before + 1);
  return { runId, ...addressIn(hook) };
}

/** Sends an event to an address, as a service without any token of this service. */
export async function sendEvent(service: Pick<WorkflowService, "url">, path: string, event: unknown, headers: object = {}) {
  const answer = await fetch(service.url + path, {
    method: "POST",
    body: typeof event === "string" ? event : JSON.stringify(event),
    headers: { "content-type": "application/json", ...headers },
  });
  const text = await answer.text();
  return { status: answer.status, text, body: text === "" ? undefined : JSON.parse(text) };
}
