/** Headers of every answer with a body. Browsers then trust the content type, and never guess a script or a page. */
export const NO_SNIFFING = { "x-content-type-options": "nosniff" };

/**
 * Headers of every JSON answer. Answers are not cached: they are current, belong to one caller, and some hold a secret that is
 * shown once.
 */
export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...NO_SNIFFING };
