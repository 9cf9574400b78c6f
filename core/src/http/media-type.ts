/** Whether a Content-Type header names one of the accepted media types. Parameters such as `charset` are ignored. */
export function hasMediaType(contentType: string | undefined, accepted: readonly string[]): boolean {
  if (contentType === undefined) return false;
  const end = contentType.indexOf(";");
  const essence = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  return accepted.includes(essence);
}
