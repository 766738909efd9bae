package retryafter

var NeedsBody = needsBody
