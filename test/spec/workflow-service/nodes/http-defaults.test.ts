import { createServer, type RequestListener } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { httpNode } from "@portico/workflow-nodes/http";
import type * as undici from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openNode } from "../../../harness/run-node.ts";
import { readPage } from "../../docs/pages.ts";

const { pools } = vi.hoisted(() => ({ pools: [] as any[] }));
vi.mock("undici/index.js", async (original) => {
  const real = await original<typeof undici>();
  class Pool extends real.Pool {
    constructor(origin: any, options: any) {
      pools.push(options);
      super(origin, options);
    }
  }
  return { ...real, Pool };
});

let answer: RequestListener;
let requests: string[] = [];
const server = createServer((request, response) => {
  requests.push(`${request.method} ${request.url} ${request.headers["idempotency-key"] ?? "without key"}`);
  answer(request, response);
});
beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
afterAll(() => void server.close());
beforeEach(() => {
  requests = [];
});

async function run(more: object = {}): Promise<any> {
  await using node = await openNode(httpNode({ allow: ["127.0.0.1"] }));
  return await node.run({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/0`, ...more });
}

const { text } = await readPage("docs/workflow-definitions.md");
/** The row of a default in the documentation. */
const row = (what: string) =>
  text
    .split("\n")
    .find((line) => line.startsWith(`| ${what}`))!
    .split("|")[2]!
    .trim();

describe("defaults of `http` nodes, as docs/workflow-definitions.md lists them", () => {
  it("is a GET without a key, which is sent once", async () => {
    expect([row("method"), row("attempts"), row("`Idempotency-Key`")]).toEqual(["`GET`", "1", "not sent"]);
    answer = (_request, response) => response.writeHead(204).end();
    await run();
    expect(requests).toEqual(["GET /0 without key"]);
  });

  it.each([200, 204, 299])("takes the status %i as success", async (status) => {
    answer = (_request, response) => response.writeHead(status).end();
    expect(row("statuses that count")).toContain("200 to 299");
    expect((await run()).status).toBe(status);
  });

  it.each([300, 304, 400, 500])("fails with the status %i", async (status) => {
    answer = (_request, response) => response.writeHead(status).end();
    await expect(run()).rejects.toMatchObject({ code: "http_status" });
  });

  it("follows 5 redirects", async () => {
    expect(row("redirects")).toContain("up to 5");
    const redirect =
      (times: number): RequestListener =>
      (request, response) => {
        const at = Number(request.url!.slice(1));
        if (at === times) response.end();
        else response.writeHead(302, { location: `/${at + 1}` }).end();
      };
    answer = redirect(5);
    expect((await run()).status).toBe(200);
    answer = redirect(6);
    await expect(run()).rejects.toMatchObject({ code: "http_status" });
    expect((await run({ expect: [302] })).status).toBe(302);
  });

  it("waits 10 s to connect, 120 s for the beginning of an answer, and 60 s within it", async () => {
    pools.length = 0;
    answer = (_request, response) => response.end();
    await run();
    expect(pools).toMatchObject([{ connect: { timeout: 10_000 }, headersTimeout: 120_000, bodyTimeout: 60_000 }]);
    expect(row("time to connect")).toContain("10 s");
    expect(row("time until an answer")).toContain("120 s");
    expect(row("time without a byte")).toContain("60 s");
  });
});
