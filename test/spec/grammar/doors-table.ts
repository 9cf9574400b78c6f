/** The bytes of one request. */
export interface OddRequest {
  readonly what: string;
  /** The request line. */
  readonly line: string;
  readonly headers: readonly string[];
  /** `as it is`: the headers declare a framing of their own. */
  readonly body?: string;
  readonly framing?: "by length" | "chunked" | "as it is";
}

const KEY = "X-Key: open";
const HOST = "Host: 127.0.0.1";
const JSON_BODY = "Content-Type: application/json";
const TEXT = "Content-Type: text/plain";
const OWN = "Origin: http://127.0.0.1";
const FRIEND = "Origin: https://desk.example";
const FOE = "Origin: https://evil.example";

/** Every kind of route that the doors' app has, by the path that reaches it. */
const PATHS = [
  "/json",
  "/json/ada",
  "/pieces",
  "/long",
  "/empty",
  "/events",
  "/broken-events",
  "/bytes",
  "/bytes-stream",
  "/redirect",
  "/raw",
  "/raw-204",
  "/refused",
  "/crash",
  "/bad-header",
  "/nowhere",
] as const;
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "QUERY", "TRACE"] as const;

const methods = PATHS.flatMap((path) => METHODS.map((method) => request(`${method} ${path}`)));

const origins = [OWN, FRIEND, FOE, "Origin: null", "Origin: nonsense"].flatMap((origin) => [
  ...PATHS.flatMap((path) => ["GET", "HEAD", "POST"].map((method) => request(`${method} ${path}`, [HOST, KEY, origin]))),
  request("OPTIONS /json", [HOST, origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-key"]),
  request("OPTIONS /nowhere", [HOST, origin, "Access-Control-Request-Method: GET"]),
]);

const targets = [
  "/json/",
  "//json",
  "/json//ada",
  "/./json",
  "/nowhere/../json",
  "/json/..",
  "/json/%2e%2e",
  "/%6Ason",
  "/json/a%20b",
  "/json/a%2Fb",
  "/json/%41da",
  "/json/%",
  "/json/%zz",
  "/json/%ff",
  "/json/100%2525",
  "/json/é",
  "/json/:name",
  "/json/__proto__",
  "/json/a;b,c'd\"e",
  "/json/{a}|b^c`d\\e",
  "/JSON",
  "/json#fragment",
  "/json/ada#fragment?a=1",
  "*",
  "http://127.0.0.1/json",
  "http://127.0.0.1/json/ada?a=1",
  "http://elsewhere.example/json",
  "ftp://127.0.0.1/json",
  "json",
  "?a=1",
  "/",
  `/json/${"x".repeat(3000)}`,
  "/slash",
  "/slash/",
  "/tree/a/b/c",
  "/tree",
].flatMap((target) => ["GET", "HEAD", "POST"].map((method) => request(`${method} ${target}`)));

const queries = [
  "",
  "a=1",
  "a=1&a=2",
  "a",
  "a=",
  "=1",
  "&&a=1&",
  "a=%",
  "a=%zz",
  "a=%20+b",
  "a='b'",
  'a="b"',
  "<a>=1",
  "a=é",
  "a[]=1",
  "__proto__=1&__proto__=2",
  "a=1?b=2",
  "a=//b",
  "unknown=1",
  "a=1#b=2",
].flatMap((query) => [request(`GET /query?${query}`), request(`GET /json/ada?${query}`)]);

const hosts = [
  [],
  ["Host:"],
  ["Host: "],
  ["Host: evil.example"],
  ["Host: localhost:1"],
  ["Host: LOCALHOST"],
  ["Host: [::1]:80"],
  ["Host: a b"],
  ["Host: a/b"],
  ["Host: user@127.0.0.1"],
  ["Host: 127.0.0.1", "Host: 127.0.0.1"],
  ["Host: 127.0.0.1", "Host: evil.example"],
  ["Host: 127.0.0.1, 127.0.0.1"],
  ["Host: 127.0.0.1", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https"],
].flatMap((named) => [
  request("GET /json", [...named, KEY]),
  request("GET /nowhere", [...named, KEY]),
  request("POST /raw", [...named, KEY, TEXT], "hello"),
  request("GET /json HTTP/1.0", [...named, KEY]),
]);

const keys = [[], ["X-Key: wrong"], ["X-Key:"], ["X-Key: open", "X-Key: open"], ["X-Key: lost"]].flatMap((key) =>
  ["GET /json", "HEAD /json", "PUT /json", "POST /json", "GET /json/%zz", "GET /query?b=1", "GET /raw", "GET /nowhere"].map(
    (line) => request(line, [HOST, ...key]),
  ),
);

const types = [
  [],
  ["Content-Type:"],
  [JSON_BODY],
  ["Content-Type: application/json; charset=utf-8"],
  ["Content-Type: APPLICATION/JSON"],
  [TEXT],
  ["Content-Type: application/json", "Content-Type: text/plain"],
  ["Content-Type: nonsense"],
];
const bodies = ["", "{}", '{"n":1}', '{"n":"1"}', '{"n":1', "[]", "null", "\uFEFF{}", `{"n":1,"pad":"${"x".repeat(300)}"}`];
const uploads = ["/json", "/optional", "/text", "/stream", "/raw", "/empty", "/query"].flatMap((path) =>
  types.flatMap((type) =>
    bodies.flatMap((body) =>
      (["by length", "chunked"] as const).map((framing) => request(`POST ${path}`, [HOST, KEY, ...type], body, framing)),
    ),
  ),
);

const framings = [
  request("POST /json", [HOST, KEY, JSON_BODY, "Content-Length: 7", "Expect: 100-continue"], '{"n":1}', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Content-Length: 7", "Expect: 200-ok"], '{"n":1}', "as it is"),
  request("POST /nowhere", [HOST, KEY, JSON_BODY, "Content-Length: 7", "Expect: 100-continue"], '{"n":1}', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Content-Length: 7", "Content-Length: 8"], '{"n":1}', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Content-Length: -1"], '{"n":1}', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Content-Length: 7", "Transfer-Encoding: chunked"], '{"n":1}', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Transfer-Encoding: gzip, chunked"], '7\r\n{"n":1}\r\n0\r\n\r\n', "as it is"),
  request("POST /json", [HOST, KEY, JSON_BODY, "Transfer-Encoding: chunked"], "zz\r\n", "as it is"),
  request(
    "POST /json",
    [HOST, KEY, JSON_BODY, "Transfer-Encoding: chunked", "Trailer: X-Late"],
    '7\r\n{"n":1}\r\n0\r\nX-Late: 1\r\n\r\n',
    "as it is",
  ),
  request("GET /json", [HOST, KEY, JSON_BODY], '{"n":1}'),
  request("HEAD /json", [HOST, KEY, JSON_BODY], '{"n":1}', "chunked"),
  request("DELETE /empty", [HOST, KEY, JSON_BODY], '{"n":1}'),
  request("POST /json HTTP/1.0", [HOST, KEY, JSON_BODY], '{"n":1}'),
];

const headers = [
  ["Connection: Upgrade", "Upgrade: websocket"],
  ["Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
  ["Range: bytes=0-1"],
  ["Range: bytes=9-1"],
  ["If-None-Match: *"],
  ['If-Match: "x"'],
  ["If-Modified-Since: Sat, 21 Nov 2099 10:00:00 GMT"],
  ["Accept: text/html"],
  ["Accept-Encoding: gzip, br"],
  ["TE: trailers"],
  ["Cookie: a=1", "Cookie: b=2"],
  ["X-Twice: 1", "X-Twice: 2"],
  ["Content-Length: 0"],
  ["Connection: keep-alive, x-key"],
].flatMap((extra) => PATHS.map((path) => request(`GET ${path}`, [HOST, KEY, ...extra])));

/** Requests that are easily answered differently behind another door. */
export const ODD_REQUESTS: Readonly<Record<string, readonly OddRequest[]>> = {
  "every method on every kind of route": methods,
  "pages of every origin": origins,
  "odd targets": targets,
  "odd queries": queries,
  "odd hosts": hosts,
  "absent, wrong and doubled credentials": keys,
  "bodies of every media type and framing": uploads,
  "odd framings": framings,
  "headers that ask for something special": headers,
};

function request(
  line: string,
  given: readonly string[] = [HOST, KEY],
  body?: string,
  framing: OddRequest["framing"] = "by length",
): OddRequest {
  const shown = given.filter((header) => header !== HOST && header !== KEY);
  const carried = body === undefined ? "" : ` (${framing}: ${body.slice(0, 40)})`;
  return {
    what: `${line.slice(0, 80)}${given.includes(KEY) ? "" : " without key"} ${shown.join(", ")}${carried}`,
    line: / HTTP\/1\.\d$/.test(line) ? line : `${line} HTTP/1.1`,
    headers: given,
    ...(body !== undefined && { body, framing }),
  };
}
