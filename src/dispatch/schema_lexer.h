// The lexer of the schema language. Tokens keep their position for error messages.
#pragma once
#include <string>
#include <string_view>

namespace facula::detail {

struct Token {
  enum Kind : uint8_t { End, Word, Number, String, Symbol };
  Kind kind = End;
  std::string_view text;  // a string includes its quotes
};

// Reads one token ahead of the parser. Symbols are -> ... :: and single characters.
class SchemaLexer {
 public:
  explicit SchemaLexer(std::string_view text) : text_(text) { advance(); }

  const Token& token() const { return token_; }
  Token take();

  bool at(std::string_view symbol) const {
    return token_.kind == Token::Symbol && token_.text == symbol;
  }
  bool at_word(std::string_view word) const {
    return token_.kind == Token::Word && token_.text == word;
  }
  // Takes the symbol if it is next.
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol);
  std::string_view expect_word(std::string_view what);
  void expect_end();

  // Throws RuntimeError: "parse_schema(): MESSAGE", the line, and a mark under the token.
  [[noreturn]] void fail(std::string_view message) const { fail_at(token_, message); }
  [[noreturn]] void fail_at(const Token& token, std::string_view message) const;
  // "expected WHAT; got TOKEN"
  [[noreturn]] void fail_expected(std::string_view what) const;

  // The value of a string token.
  std::string unquote(const Token& token) const;

 private:
  void advance();
  void skip_space();
  size_t word_length() const;
  size_t number_length() const;
  size_t string_length() const;
  size_t symbol_length() const;
  char peek(size_t offset = 0) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }

  std::string_view text_;
  size_t position_ = 0;
  Token token_;
};

}  // namespace facula::detail
