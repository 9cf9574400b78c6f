import { ports } from "@portico/core";
import { afterEach, expect, it, vi } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { promptOf } from "../../harness/scripted-agent.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

let service: WebhookService;
let secret: string;
afterEach(() => service?.close());

/** A service whose agent delivers what the event's field `message` says. */
async function start(toolIds: readonly string[] = ["SendUserMessage"]): Promise<void> {
  service = await startWebhookService();
  secret = await service.save("news", "{{message}}", { toolIds });
  service.engine.otherwise(async (turn, { callTool, signal, say }) => {
    await callTool({ toolId: "SendUserMessage", arguments: JSON.parse(promptOf(turn)) }, signal);
    await say({ type: "text", delta: "An ordinary answer" });
  });
}
const list = async (query = "") => service.manage("GET", `helper/schedule-messages${query}`);
const news = async (message: object) => {
  const before = (await list()).body.total;
  await service.trigger(secret, { event: "news", payload: { message } });
  await expect.poll(async () => (await list()).body.total).toBe(before + 1);
};

it("what SendUserMessage delivers is listed with its origin and the event's name (2.6)", async () => {
  await start();
  await news({ text: "Deployed", attachments: ["file-1"] });
  const { status, body } = await list();
  expect(status).toBe(200);
  expect(body).toEqual({
    items: [
      {
        id: expect.any(String),
        runId: expect.stringMatching(/^run_/),
        deliveredAt: expect.any(String),
        origin: "webhook",
        displayName: "news",
        delivery: { message: "Deployed", attachments: ["file-1"] },
      },
    ],
    total: 1,
    limit: 50,
    offset: 0,
  });
});

it("a message is text or blocks; text is set where it degraded to plain text", async () => {
  await start();
  const blocks = [{ type: "heading", text: "Report" }];
  await news({ text: "Report", blocks });
  await news({ text: "Sales: 1, 2", blocks: [{ type: "chart", points: [1, 2] }] });
  const [degraded, shown] = (await list()).body.items;
  expect(shown.delivery).toEqual({ message: blocks, attachments: [] });
  expect(shown.text).toBeUndefined();
  expect(degraded.delivery).toEqual({ attachments: [] });
  expect(degraded.text).toBe("Sales: 1, 2");
});

it("a final answer is not delivered; only the tool delivers (4.4)", async () => {
  await start([]);
  await service.trigger(secret, { event: "news", payload: { message: { text: "Deployed" } } });
  await expect.poll(async () => (await service.call("owner", "GET", "/api/runs")).body.runs[0]?.status).toBe("completed");
  expect((await list()).body).toEqual({ items: [], total: 0, limit: 50, offset: 0 });
});

it("lists the newest first, in pages of limit after offset; default 50, at most 200", async () => {
  await start();
  for (let index = 0; index < 5; index++) await news({ text: `${index}` });
  const texts = async (query: string) => {
    const { body } = await list(query);
    return [body.items.map(({ delivery }: any) => delivery.message), body.total, body.limit, body.offset];
  };
  expect(await texts("")).toEqual([["4", "3", "2", "1", "0"], 5, 50, 0]);
  expect(await texts("?limit=2")).toEqual([["4", "3"], 5, 2, 0]);
  expect(await texts("?limit=2&offset=3")).toEqual([["1", "0"], 5, 2, 3]);
  expect(await texts("?offset=5")).toEqual([[], 5, 50, 5]);
  expect(await texts("?limit=200&offset=9007199254740991")).toEqual([[], 5, 200, Number.MAX_SAFE_INTEGER]);
});

it("a page of long messages is read as far as its reader takes it", async () => {
  service = await startWebhookService();
  secret = await service.save("news", "news", { toolIds: ["SendUserMessage"] });
  const text = "\u0001".repeat(256 * 1024);
  service.engine.otherwise(async (_turn, { callTool, signal }) => {
    for (let count = 0; count < 40; count++) await callTool({ toolId: "SendUserMessage", arguments: { text } }, signal);
  });
  await service.trigger(secret, { event: "news" });
  await expect.poll(async () => (await list("?limit=1")).body.total, { timeout: 100_000 }).toBe(40);
  const log = service.app.port(ports.log);
  const read = log.read.bind(log);
  let isRead = 0;
  vi.spyOn(log, "read").mockImplementation(async function* (...given) {
    for await (const entry of read(...given)) {
      isRead++;
      yield entry;
    }
  });
  const headers = { "x-agent-service-token": TOKENS.owner };
  const reply = await service.raw({ path: "/api/agents/helper/schedule-messages?limit=200", headers });
  expect([reply.status, isRead]).toEqual([200, expect.toSatisfy((count: number) => count < 40)]);
  const { items, total } = JSON.parse(await reply.text());
  expect([items.length, total]).toEqual([40, 40]);
  expect(items.every(({ delivery }: any) => delivery.message === text)).toBe(true);
}, 120_000);

it.each([
  "limit=0",
  "limit=201",
  "limit=-1",
  "limit=1.5",
  "limit=",
  "limit=ten",
  "limit=1&limit=2",
  "offset=-1",
  "offset=x",
  "offset=1e3",
])("400 invalid_webhook_management_request with %s", async (query) => {
  await start();
  const { status, body } = await list(`?${query}`);
  expect([status, body.error]).toEqual([400, "invalid_webhook_management_request"]);
});

it("each agent's deliveries are its own", async () => {
  await start();
  await news({ text: "Deployed" });
  const { body } = await service.manage("GET", "nobody/schedule-messages");
  expect(body.error).toBe("agent_not_found");
});
