import type { AnswerHeaders } from "./door.ts";

/**
 * Headers of a Node answer, where one name may have several values, for a fetch answer. Throws a TypeError for an invalid header.
 */
export function webHeaders(headers: AnswerHeaders): Headers {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === "string" ? [value] : value) web.append(name, one);
  }
  return web;
}

/**
 * The response with additional headers. The headers of a handler's Response can be immutable, as with `fetch` and
 * `Response.redirect`.
 */
export function withHeaders(response: Response, added: AnswerHeaders): Response {
  try {
    put(response.headers, added);
    return response;
  } catch {
    const headers = put(new Headers(response.headers), added);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

function put(headers: Headers, added: AnswerHeaders): Headers {
  for (const [name, value] of Object.entries(added)) {
    if (typeof value === "string") headers.set(name, value);
    else for (const one of value) headers.append(name, one);
  }
  return headers;
}
