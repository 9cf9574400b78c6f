/** Headers of a Node answer, where one name may have several values, for a fetch answer. Throws a TypeError for what is no header. */
export function webHeaders(headers: Readonly<Record<string, string | readonly string[]>>): Headers {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === "string" ? [value] : value) web.append(name, one);
  }
  return web;
}
