// Secrets stay with the server that the definition names: docs/ports/workflow-nodes.md, docs/areas/workflow-service.md, "Secrets".
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { httpNode } from "@portico/workflow-nodes/http";
import { Secret } from "@portico/core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const SECRET = "Tracker-Secret-0123456789";
const ADDRESS = "https://Hooks-Of-The-Test.invalid/services/T000";
const UMLAUT = "Schlüssel-Of-The-Test";
const PIN = "48213";

interface Seen {
  readonly headers: string;
  readonly body: string;
}

let server: Server;
let port: number;
let answer: RequestListener;
let seen: Seen[] = [];
let service: WorkflowService | undefined;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    seen.push({ headers: JSON.stringify(request.headers), body });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
afterEach(async () => {
  seen = [];
  await service?.close();
});

async function play(nodes: object) {
  service = await startWorkflowService({
    definitions: { "wf.json": { nodes } },
    adapters: [httpNode({ allow: ["127.0.0.1", "localhost"] })],
    runtime: { secrets: { TRACKER: new Secret(SECRET), UMLAUT: new Secret(UMLAUT), ADDRESS: new Secret(ADDRESS) } },
  });
  return service.ended("wf", await service.trigger("wf"));
}

/** Answers the first server's requests with a redirect to another origin. */
const redirect = (status: number): RequestListener => {
  return (request, response) => {
    if (request.headers.host?.startsWith("localhost")) response.end("there");
    else response.writeHead(status, { location: `http://localhost:${port}/` }).end();
  };
};
const login = { type: "repeatable", with: { say: { pin: PIN } }, sensitive: ["pin"] };
const call = (more: object) => ({ type: "http", needs: ["login"], with: { url: `http://127.0.0.1:${port}/`, ...more } });

describe("a redirect of an http node to another origin", () => {
  it("leaves every header behind that has a secret or a sensitive value, whatever its name", async () => {
    answer = redirect(307);
    const headers = {
      "x-jwt": "${{ secrets.TRACKER }}",
      "x-pin": "${{ nodes.login.output.pin }}",
      "x-encoded": "Basic ${{ base64.encode(bytes('ada:' + secrets.TRACKER)) }}",
      "x-plain": "kept",
    };
    const { status } = await play({ login, call: call({ method: "POST", headers, body: { plain: true } }) });
    expect(status).toBe("completed");
    expect(seen).toHaveLength(2);
    for (const name of Object.keys(headers)) expect([name, seen[0]!.headers.includes(name)]).toEqual([name, true]);
    expect(Object.keys(headers).filter((name) => seen[1]!.headers.includes(name))).toEqual(["x-plain"]);
    expect(seen[1]!.body).toBe('{"plain":true}');
  });

  it.each([
    ["JSON", { body: { deep: ["${{ secrets.TRACKER }}"] } }],
    ["a text", { body: "pin=${{ nodes.login.output.pin }}" }],
    ["a form", { form: { pin: "${{ nodes.login.output.pin }}" } }],
    ["parts", { multipart: [{ name: "key", value: "${{ secrets.TRACKER }}" }] }],
    ["bytes", { bytes: "${{ base64.encode(bytes(secrets.TRACKER)) }}" }],
  ])("is not followed with %s that has a secret", async (_name, body) => {
    answer = redirect(308);
    const { status, nodeResults } = await play({ login, call: call({ method: "POST", ...body }) });
    expect([status, nodeResults.call.error.code]).toEqual(["failed", "http_address_refused"]);
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(nodeResults)).not.toMatch(new RegExp(`${SECRET}|${PIN}`));
  });

  it("is followed as a GET without the body", async () => {
    answer = redirect(303);
    const { status } = await play({ login, call: call({ method: "POST", body: "${{ secrets.TRACKER }}" }) });
    expect([status, seen[1]!.body]).toEqual(["completed", ""]);
  });
});

it("a secret in the host of a URL is masked in the error, the history and the search, as the host spells it", async () => {
  const host = (name: string) => ({
    type: "http",
    with: { url: `http://\${{ secrets.${name} }}.invalid/` },
    onError: "continue",
  });
  const { runId, nodeResults } = await play({ one: host("TRACKER"), other: host("UMLAUT") });
  for (const { error } of [nodeResults.one, nodeResults.other])
    expect(error.message).toMatch(/^http:\/\/\*\*\*\.invalid could not/);
  const punycode = new URL(`http://${UMLAUT}`).hostname;
  for (const path of [`wf/runs/${runId}`, "wf/runs", "runs/search"]) {
    const { status, body } = await service!.call("GET", `/api/workflow/${path}`);
    const shown = JSON.stringify(body).toLowerCase();
    expect([path, status]).toEqual([path, 200]);
    for (const secret of [SECRET, UMLAUT, punycode]) expect(shown).not.toContain(secret.toLowerCase());
  }
});

it("an address that is a secret is masked in errors, with its origin", async () => {
  const { nodeResults } = await play({ one: { type: "http", with: { url: "${{ secrets.ADDRESS }}" }, onError: "continue" } });
  expect(nodeResults.one).toMatchObject({
    inputs: { url: "***" },
    error: { message: expect.stringMatching(/^\*\*\* could not/) },
  });
  expect(JSON.stringify(nodeResults).toLowerCase()).not.toContain("hooks-of-the-test");
});
