import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { compileCache } from "../../harness/compile-cache.ts";
import { root } from "../../rooms/repository.ts";
import { readPages } from "../docs/pages.ts";
import { isRun } from "../docs/run-page.ts";

/** What every host says that has mounted the desk. */
const DESK =
  'host: a page of the host\'s own\nproxy: You said: Hello (This is the offline demo model.)\nnotebook: {"notes":[]}\n';

/** What each story prints when it runs alone. */
const stories: Readonly<Record<string, string>> = {
  "third-party-plugin": "written: first\nlisted: first\nThe call failed: note_exists (409)\n",
  "own-tools": "memory offers: remember, recall\n[ { type: 'text', text: 'No milk.' } ]\n",
  "own-background-work": "accepted\nknown\ndone: You said: Ports are small. (This is the offline demo model.)\n",
  "own-agent-engine":
    "clerk: Tell me to run a tool.\nclerk: 42\nclerk: The arguments do not fit the tool's schema: (arguments) must have required property 'b'\n",
  "own-workflow-node": "run_1 { count: 1 }\nrun_1 { count: 1 }\nrun_2 { count: 2 }\n",
  "mcp-tools":
    "corner/opening-hours medium [ { type: 'text', text: 'From nine to five.' } ]\n" +
    "market/opening-hours low [ { type: 'text', text: 'From nine to five.' } ]\n",
  "own-agents": "agent: You said: Hello (This is the offline demo model.)\n",
  "service-pages":
    'console: text/html; charset=utf-8\ndocuments: Our agents\nready: {"status":"ready"}\nmeasured: 1 of web-console.page\n',
  "own-workflows": "completed { greeting: 'HELLO ADA!' }\n",
  "forward-github":
    'ping: 204\nagent: github.push {"repository":"ada/tea","title":"Add milk","ref":"refs/heads/main"}\npush: 200\n',
  "stripe/forward-stripe":
    'customer.created: 204\nagent: stripe.invoice.paid {"id":"evt_1","object":"invoice","objectId":"in_1","customer":"cus_1",' +
    '"amount":4200,"currency":"eur","status":"paid"}\ninvoice.paid: 200\n',
  ...Object.fromEntries(
    ["embed-crossws", "embed-express", "embed-fastify", "embed-h3", "embed-hono"].map((name) => [name, `${DESK}agent: Hello\n`]),
  ),
  "embed-fetch": DESK,
  "embed-platform": "agent: You said: Hello (This is the offline demo model.)\n",
  "embed-some-areas":
    "/api/conversations: 200\n/api/safe-tokens: 404\n" +
    "{\n  webhookManagement: false,\n  media: false,\n  attachments: false,\n  realtime: true,\n  safeTokens: false,\n  agentDocuments: true\n}\n",
  "embed-two-apps": "ada's notes: tea\nbob's notes: \nbob in ada's notebook: 401\n",
  "plain-websocket": "1 Hello\n",
  "own-identity": 'ada: {"userId":"ada","role":"owner"}\nbob: {"userId":"bob","role":"member"}\neve: unauthorized\n',
  "own-middleware": '200, run by the desk: {"notes":[]}\n503: Read only for now\n{"notebook":"shared-notebook"}\n',
  "own-provider": "200: Called with Bearer a-token-for-this-hour\nCalled with Bearer ***\n",
  "own-protocol": "200: You said: Hello\n",
  "own-session": '{"userId":"ada","role":"member"}\nsigned out: 401\n{"userId":"bob","role":"member"}\nsigned out: 401\n',
  "own-storage": "Ada: Tea without milk.\nBob: no note\n",
};

it.each(Object.entries(stories))("playground/%s.ts runs alone, says what it did, and ends", async (name, printed) => {
  const run = await promisify(execFile)(process.execPath, [resolve(root, `playground/${name}.ts`)], {
    env: { PATH: process.env["PATH"], ...compileCache },
  });
  expect(run).toEqual({ stdout: printed, stderr: "" });
});

it("every story is run: what else lies in the playground is what stories share", () => {
  const files = readdirSync(resolve(root, "playground")).filter((file) => /(?<!\.test)\.ts$/.test(file));
  // They run until they are stopped, and have tests of their own.
  const services = ["another-store.ts", "own-preset.ts"];
  const shared = [
    "desk.ts",
    "embedding-story.ts",
    "listen.ts",
    "notebook.ts",
    "shop-server.ts",
    "stand-in-trigger.ts",
    "trigger-agent.ts",
  ];
  const run = Object.keys(stories).flatMap((name) => (name.includes("/") ? [] : `${name}.ts`));
  // The configuration is read by the test of the page that shows it.
  expect(files.sort()).toEqual([...run, ...services, ...shared, "portico.config.ts"].sort());
});

it("every client is run by a page, beside a service", async () => {
  const commands = (await readPages()).flatMap(({ blocks }) => blocks.filter(isRun).map(({ text }) => text)).join("\n");
  const clients = readdirSync(resolve(root, "playground/clients"));
  expect(clients.length).toBeGreaterThan(3);
  expect(clients.filter((file) => !commands.includes(`npx node playground/clients/${file}`))).toEqual([]);
});
