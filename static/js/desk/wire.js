// One POST of the form's fields, and what became of it, without exceptions:
// (a connection that hangs for 20 s counts as none)
//   ok {body} | invalid {body} | conflict {body} | signed-out | unavailable {retryAfter} | refused {body}
export async function post(url, fields, { keepalive = false } = {}) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      body: new URLSearchParams(fields),
      headers: { Accept: "application/json" },
      credentials: "same-origin",
      signal: AbortSignal.timeout(20_000),
      keepalive,
    });
  } catch {
    return { kind: "unavailable", retryAfter: 0 };
  }
  return { kind: kindOf(response), body: await bodyOf(response), retryAfter: waitOf(response) };
}

export function kindOf(response) {
  if (response.redirected || response.status === 401) return "signed-out";
  if (response.ok) return "ok";
  if (response.status === 422) return "invalid";
  if (response.status === 409) return "conflict";
  if (response.status === 429 || response.status >= 500) return "unavailable";
  return "refused";
}

function waitOf(response) {
  return Number(response.headers.get("Retry-After")) || 0;
}

async function bodyOf(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}
