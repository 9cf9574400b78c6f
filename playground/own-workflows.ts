// A workflow service inside your own application, with a custom kind of node. Everything is in memory.
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { memoryStore } from "@portico/adapters/stores/memory";
import { type App, createApp, defineWorkflowNode, ports, Secret } from "@portico/core";
import { workflowService } from "@portico/plugins/workflow-service";
import * as v from "valibot";

const SERVICE_TOKEN = "a-token-for-this-story";

const greet = `
parameters: { type: object, required: [name], properties: { name: { type: string } } }
nodes:
  shout: { type: shout, with: { text: "Hello \${{ parameters.name }}" } }
outputs:
  greeting: "\${{ nodes.shout.output.text }}"
`;

/** Nodes of type `shout`. Input and output are `{ text }`. */
export const shoutNode = defineWorkflowNode({
  name: "workflow-nodes/shout",
  needs: {},
  rules: () => ({ type: "shout", input: v.strictObject({ text: v.string() }), repeatable: true }),
  open: () => ({
    async run({ input }: ports.NodeWork<{ readonly text: string }>) {
      if (input.text === "") throw new ports.NodeFailed("nothing_to_shout", "The text is empty", { retryable: false });
      return { text: `${input.text.toUpperCase()}!` };
    },
  }),
});

/** Surface `workflow`. To keep runs after the process ends, use `sqliteStore({ dir })` instead of the store in memory. */
export function openWorkflows(): Promise<App> {
  return createApp({
    name: "workflows",
    adapters: [...memoryStore(), memoryDocuments({ id: "workflows", texts: { "greet.yaml": greet } }), shoutNode()],
    plugins: [workflowService({ token: new Secret(SERVICE_TOKEN) })],
  });
}

/** Sends a request with the service token, and returns the JSON of the answer, or the text of a stream. */
export async function call(app: App, path: string, body?: object): Promise<any> {
  const answer = await app.surface("workflow").fetch(
    new Request(`http://workflows.local${path}`, {
      method: body ? "POST" : "GET",
      headers: { "x-workflow-service-token": SERVICE_TOKEN, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
  return answer.headers.get("content-type")?.startsWith("text/event-stream") ? answer.text() : answer.json();
}

if (import.meta.main) {
  await using app = { opened: await openWorkflows(), [Symbol.asyncDispose]: () => app.opened.close() };
  const { runId } = await call(app.opened, "/api/workflow/webhook?id=greet", { name: "Ada" });
  await call(app.opened, `/api/workflow/events?runId=${runId}`);
  const { status, finalOutputs } = await call(app.opened, `/api/workflow/greet/runs/${runId}`);
  console.log(status, finalOutputs);
}
