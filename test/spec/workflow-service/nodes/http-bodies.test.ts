import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { httpNode } from "@portico/workflow-nodes/http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openNode, type OpenNode } from "../../../harness/run-node.ts";

const BYTES = Buffer.from([0, 255, 13, 10, 45, 45, 128]);

let server: Server;
let url: string;
let node: OpenNode;
const seen: { headers: IncomingHttpHeaders; body: Buffer }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    void buffer(request).then((body) => {
      seen.push({ headers: request.headers, body });
      if (request.url === "/moved") response.writeHead(307, { location: "/" }).end();
      else response.end("ok");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(async () => {
  seen.length = 0;
  node = await openNode(httpNode({ allow: ["127.0.0.1"] }));
});
afterEach(() => node[Symbol.asyncDispose]());

/** The fields of a request, read by the parser of `fetch`. */
function parsed({ headers, body }: (typeof seen)[number]): Promise<FormData> {
  return new Response(new Uint8Array(body), { headers: { "content-type": headers["content-type"]! } }).formData();
}

describe("http: forms and bytes", () => {
  it("sends the fields of `form` URL-encoded, and a list once for each element", async () => {
    await node.run({ url, method: "POST", form: { a: "x y&z=é", n: 1, yes: [true, "b"] } });
    expect(seen[0]!.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect([...(await parsed(seen[0]!))]).toEqual([
      ["a", "x y&z=é"],
      ["n", "1"],
      ["yes", "true"],
      ["yes", "b"],
    ]);
  });

  it("sends the parts of `multipart` in order: values, and files with name, type and bytes", async () => {
    const multipart = [
      { name: "title", value: "Größe\r\n--x" },
      { name: "count", value: 0 },
      { name: "file", bytes: BYTES.toString("base64"), filename: "a.bin" },
      { name: "note", value: "a,b", filename: "n.csv", type: "text/csv" },
    ];
    await node.run({ url, method: "POST", multipart });
    const form = await parsed(seen[0]!);
    expect([...form.keys()]).toEqual(["title", "count", "file", "note"]);
    expect([form.get("title"), form.get("count")]).toEqual(["Größe\r\n--x", "0"]);
    const [file, note] = [form.get("file") as File, form.get("note") as File];
    expect([file.name, file.type, Buffer.from(await file.arrayBuffer())]).toEqual(["a.bin", "application/octet-stream", BYTES]);
    expect([note.name, note.type, await note.text()]).toEqual(["n.csv", "text/csv", "a,b"]);
  });

  it("keeps names of parts and files out of the part's headers", async () => {
    const evil = 'a"\r\nX-Evil: 1';
    await node.run({ url, method: "POST", multipart: [{ name: evil, value: "v", filename: evil }] });
    const text = seen[0]!.body.toString();
    expect(text).toContain('name="a%22%0D%0AX-Evil: 1"; filename="a%22%0D%0AX-Evil: 1"\r\n');
    expect(text).not.toMatch(/^X-Evil/m);
  });

  it("sends the same bytes for the same `multipart`, as an Idempotency-Key promises", async () => {
    const given = { url, method: "POST", key: true, multipart: [{ name: "a", value: "b" }] };
    await node.run(given);
    await node.run(given);
    expect(seen[1]!.body).toEqual(seen[0]!.body);
    expect(seen[1]!.headers["content-type"]).toBe(seen[0]!.headers["content-type"]);
  });

  it("sends `bytes` decoded, with the type of `headers` if they name one, and again after a redirect", async () => {
    const bytes = BYTES.toString("base64");
    await node.run({ url: `${url}/moved`, method: "PUT", bytes });
    await node.run({ url, method: "PUT", bytes, headers: { "Content-Type": "image/png" } });
    expect(seen.map(({ body, headers }) => [body, headers["content-type"], headers["content-length"]])).toEqual([
      [BYTES, "application/octet-stream", "7"],
      [BYTES, "application/octet-stream", "7"],
      [BYTES, "image/png", "7"],
    ]);
  });

  it.each([
    ["two bodies", { body: null, form: {} }, ["form"]],
    ["two bodies", { multipart: [{ name: "a", value: 1 }], bytes: "" }, ["bytes"]],
    ["a body of GET", { method: "GET", form: { a: 1 } }, ["form"]],
    ["bytes that are not base64", { bytes: "a b" }, ["bytes"]],
    ["a part without content", { multipart: [{ name: "a" }] }, ["multipart", 0]],
    ["a part with two contents", { multipart: [{ name: "a", value: "", bytes: "" }] }, ["multipart", 0]],
    ["a part's bytes that are not base64", { multipart: [{ name: "a", bytes: "é" }] }, ["multipart", 0, "bytes"]],
    ["an invalid type", { multipart: [{ name: "a", value: 1, type: "a/b\r\nX-Evil: 1" }] }, ["multipart", 0, "type"]],
    [
      "a boundary of the definition's",
      { multipart: [{ name: "a", value: 1 }], headers: { "Content-Type": "multipart/form-data" } },
      ["headers", "Content-Type"],
    ],
  ])("refuses %s before a run, and before a request", async (_what, more, path) => {
    const given = { url, method: "POST", ...more };
    expect(node.check(given)).toMatchObject([{ path }]);
    const error = await node.failure(given);
    expect([error.code, error.retryable, seen]).toEqual(["http_request_invalid", false, []]);
  });

  it("checks templates only after their evaluation", () => {
    const template = "${{ nodes.a.output.body }}";
    const multipart = [{ name: "a", bytes: template, type: template }];
    expect([node.check({ url, method: "POST", bytes: template }), node.check({ url, method: "POST", multipart })]).toEqual([
      [],
      [],
    ]);
  });
});
