import { httpNode } from "@portico/workflow-nodes/http";
import { expect } from "vitest";
import type { HookServer } from "./hook-server.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "./workflow-app.ts";

/** Where people reach the service. */
export const PUBLIC_URL = "https://workflows.example/in-front/";

/** Of a gate that asks for values. */
export const form = {
  type: "object",
  required: ["audience"],
  properties: {
    audience: { enum: ["everybody", "members"], title: "Who may read it?" },
    copies: { type: "integer", minimum: 1, description: "On paper" },
    urgent: { type: "boolean" },
    note: { type: "string", maxLength: 50 },
    tags: { type: "array", items: { type: "string" } },
  },
  additionalProperties: false,
};

/** A workflow of one gate, which notifies a hook with its link. */
export function gated({ url }: Pick<HookServer, "url">, gate: object = {}): object {
  return {
    parameters: { type: "object", properties: { what: { type: "string", default: "the <lift> & more" } } },
    nodes: {
      ok: {
        type: "human_gate",
        with: {
          ...{ title: "Publish <b>this</b>?", message: "About ${{ parameters.what }}" },
          ...{ links: true, notify: { url, body: { link: "${{ gate.link }}", until: "${{ gate.linkExpiresAt }}" } } },
          ...gate,
        },
      },
    },
    outputs: { decision: "${{ nodes.ok.output }}" },
  };
}

/** A service with that workflow. */
export function startGated(hook: HookServer, options: WorkflowServiceOptions = {}, gate: object = {}): Promise<WorkflowService> {
  return startWorkflowService({
    definitions: { "gated.json": gated(hook, gate) },
    adapters: [httpNode({ allow: [hook.host] })],
    runtime: { publicUrl: PUBLIC_URL },
    ...options,
  });
}

/** A run that waits, and the path of the link that its notification contained. */
export async function linked(service: WorkflowService, hook: HookServer, parameters: object = {}) {
  const before = hook.received.length;
  const runId = await service.trigger("gated", parameters);
  await expect.poll(() => hook.received.length).toBe(before + 1);
  await service.until("gated", runId, ({ humanGate }) => humanGate?.notification !== undefined);
  const { link, until } = hook.received.at(-1)!.body as { link: string; until: string };
  expect(link.startsWith("https://workflows.example/in-front/approve/")).toBe(true);
  return { runId, until, path: link.slice(link.indexOf("/approve/")), token: link.split("/approve/")[1]! };
}
