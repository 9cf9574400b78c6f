import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { PROVIDER_KEY, type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { cutCall, rawCall, statusOf } from "../../harness/raw-call.ts";

const JSON_TYPE = "content-type: application/json";
const BODY = JSON.stringify(CALLERS.messages.request());

describe("hostile requests (5; open points 2), byte by byte over a socket", () => {
  let upstream: FakeUpstream;
  let evil: FakeUpstream;
  let proxy: ProxyApp;
  let token: string;

  beforeAll(async () => {
    [upstream, evil] = await Promise.all([startFakeUpstream(), startFakeUpstream()]);
    proxy = await startProxy({
      providers: [
        { protocol: "messages", upstream },
        { protocol: "messages", upstream: evil, id: "other" },
      ],
    });
    token = await proxy.token();
  });
  beforeEach(() => {
    upstream.reset();
    evil.reset();
  });
  afterAll(async () => {
    await proxy.close();
    await Promise.all([upstream.close(), evil.close()]);
  });

  /** A whole POST; `lines` are more header lines, unchanged. */
  const post = (lines: readonly string[] = [], target = "/v1/messages", body = BODY) =>
    rawCall(
      proxy.url,
      [
        `POST ${target} HTTP/1.1`,
        "host: proxy",
        "connection: close",
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(body)}`,
        ...lines,
        "",
        body,
      ].join("\r\n"),
    );
  const bearer = () => `authorization: Bearer ${token}`;

  it("the plain request of this file is good", async () => {
    expect(statusOf(await post([bearer()]))).toBe(200);
  });

  it.each([
    ["a line feed in a value", "x-service-provider-id: other\nauthorization: Bearer x"],
    ["a carriage return in a value", "x-a: b\rc: d"],
    ["a NUL in a value", "x-a: b\0c"],
    ["a folded header", "x-a: b\r\n authorization: Bearer x"],
    ["a space before the colon", "authorization : Bearer x"],
    ["a header without a name", ": value"],
    ["a header name that is no token", "x(a): b"],
  ])("%s does no harm: it is refused, or it is a header like any other", async (_name, line) => {
    const answer = await post([bearer(), line]);
    expect([200, 400]).toContain(statusOf(answer));
    for (const { rawHeaders } of upstream.requests) expect(rawHeaders.join("\n")).not.toMatch(/Bearer x|other/);
    expect(evil.requests).toHaveLength(0);
  });

  it("two x-api-key headers are one wrong token", async () => {
    expect(statusOf(await post([`x-api-key: ${token}`, `x-api-key: ${token}`]))).toBe(401);
    expect(statusOf(await post(["x-api-key: service_wrong", `x-api-key: ${token}`]))).toBe(401);
    expect(upstream.requests).toHaveLength(0);
  });

  it("a wrong x-api-key is not rescued by authorization in another spelling or twice", async () => {
    expect(
      statusOf(await post(["X-API-KEY: service_wrong", `Authorization: Bearer ${token}`, `authorization: Bearer ${token}`])),
    ).toBe(401);
  });

  it("an absolute address on the request line leads nowhere else", async () => {
    const answer = await post([bearer()], `${evil.baseUrl}/messages`);
    expect([200, 400, 404]).toContain(statusOf(answer));
    expect(evil.requests).toHaveLength(0);
  });

  it.each(["evil.example", "evil.example:1", "127.0.0.1@evil.example", "", "a b"])(
    "a host header %j leads nowhere else",
    async (host) => {
      const head = `POST /v1/messages HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${bearer()}\r\n`;
      const answer = await rawCall(proxy.url, `${head}${JSON_TYPE}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
      expect([200, 400]).toContain(statusOf(answer));
      for (const { headers } of upstream.requests) expect(headers.host).toBe(new URL(upstream.baseUrl).host);
      expect(evil.requests).toHaveLength(0);
    },
  );

  it.each([
    "CONNECT 127.0.0.1:1 HTTP/1.1",
    "GET * HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "POST v1/messages HTTP/1.1",
    "POST  HTTP/1.1",
    "PRI * HTTP/2.0",
  ])("the request line %j is refused", async (line) => {
    const answer = await rawCall(proxy.url, `${line}\r\nhost: proxy\r\nconnection: close\r\n${bearer()}\r\n\r\n`);
    expect(statusOf(answer) === 0 || statusOf(answer) >= 400, answer.slice(0, 80)).toBe(true);
    expect(upstream.requests).toHaveLength(0);
  });

  it("length and chunks at once are refused: no request hides in another", async () => {
    const hidden = `GET /v1/models HTTP/1.1\r\nhost: proxy\r\n${bearer()}\r\n\r\n`;
    const answer = await post([bearer(), "transfer-encoding: chunked"], "/v1/messages", `0\r\n\r\n${hidden}`);
    expect(statusOf(answer)).toBe(400);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it.each([
    "connection: close, authorization, x-api-key, content-type, content-length, host",
    "connection: close, anthropic-version, , ,",
    "connection: \u00fc",
  ])("`%s` takes nothing away that the call needs", async (line) => {
    const answer = await post([bearer(), line]);
    expect([200, 400]).toContain(statusOf(answer));
    for (const { headers } of upstream.requests) {
      expect([headers["x-api-key"], headers["content-type"]]).toEqual([PROVIDER_KEY, "application/json"]);
    }
  });

  it.each([
    ["x-api-key of 15,000 characters", () => `x-api-key: service_${"A".repeat(15_000)}`, [401]],
    ["headers of 100,000 characters", () => `x-a: ${"A".repeat(100_000)}`, [431]],
    ["5,000 headers", () => Array.from({ length: 5_000 }, (_, index) => `x-${index}: a`).join("\r\n"), [401, 431]],
  ] as const)("%s are refused", async (_name, line, statuses) => {
    expect(statuses).toContain(statusOf(await post([line()])));
    expect(upstream.requests).toHaveLength(0);
  });

  it("the provider's key in x-api-key beside a valid token is refused and not forwarded", async () => {
    expect(statusOf(await post([`x-api-key: ${PROVIDER_KEY}`, bearer()]))).toBe(401);
  });

  it("uploads that are cut at any point leave nothing behind: the next request works", async () => {
    const head = `POST /v1/messages HTTP/1.1\r\nhost: proxy\r\n${bearer()}\r\n${JSON_TYPE}`;
    const whole = `${head}\r\ncontent-length: ${BODY.length + 9}\r\n\r\n${BODY}`;
    for (let at = 1; at <= whole.length; at += 23) await cutCall(proxy.url, whole.slice(0, at));
    expect(statusOf(await post([bearer()]))).toBe(200);
    // Of all the others none was whole, so none may have been called for.
    expect(upstream.requests).toHaveLength(1);
  });

  it("chunked uploads that are cut or broken in their framing leave nothing behind", async () => {
    const line = "POST /v1/messages HTTP/1.1\r\nhost: proxy";
    const head = `${line}\r\n${bearer()}\r\n${JSON_TYPE}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const size = BODY.length.toString(16);
    for (const framing of [
      `${size}\r\n${BODY}`,
      `${size}\r\n${BODY}\r\n`,
      "zz\r\n",
      "ffffffffffffffff\r\n",
      "-1\r\n",
      `${size}\r\n${BODY}\r\n0\r\n`,
    ]) {
      await cutCall(proxy.url, head + framing);
    }
    expect(statusOf(await post([bearer()]))).toBe(200);
    expect(upstream.requests).toHaveLength(1);
  });
});
